package cli

import (
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/timespec"
)

// ParseWhen reads the value of a flag as [timespec.ReadWhen] does.
func ParseWhen(flag, s string, now time.Time) (timespec.When, error) {
	return timespec.ReadWhen(fault.FieldOf(flag), s, now)
}

// ParseDuration reads the value of a flag as [timespec.DurationWithin] does.
func ParseDuration(flag, s string, lo, hi time.Duration, allowZero bool) (time.Duration, error) {
	return timespec.ReadDuration("--"+flag, s, lo, hi, allowZero)
}
