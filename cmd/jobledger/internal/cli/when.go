package cli

import (
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/when"
)

// ParseWhen reads the value of a flag as [when.ReadWhen] does.
func ParseWhen(flag, s string, now time.Time) (when.When, error) {
	return when.ReadWhen(fault.FieldOf(flag), s, now)
}

// ParseDuration reads the value of a flag as [when.DurationWithin] does.
func ParseDuration(flag, s string, lo, hi time.Duration, allowZero bool) (time.Duration, error) {
	return when.ReadDuration("--"+flag, s, lo, hi, allowZero)
}
