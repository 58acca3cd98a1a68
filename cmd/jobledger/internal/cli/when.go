package cli

import (
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/timespec"
	"jobledger/projection/query"
)

// FieldOf is the field of a question that a flag stands for, and the parameter over HTTP.
func FieldOf(flag string) string {
	if flag == "as-of" {
		return "at"
	}
	return strings.ReplaceAll(flag, "-", "_")
}

// flagOf is the flag for a field.
func flagOf(field string) string {
	if field == "at" {
		return "as-of"
	}
	return strings.ReplaceAll(field, "_", "-")
}

// ParseWhen reads the value of a flag as [timespec.ParseWhen] does.
func ParseWhen(flag, s string, now time.Time) (timespec.When, error) {
	w, err := timespec.ParseWhen(s, now)
	if err != nil {
		return w, &query.InputError{Field: FieldOf(flag), Reason: fmt.Sprintf("%q %s", s, err),
			Hint: timespec.WhenForms}
	}
	return w, nil
}

// ParseDuration reads the value of a flag as [timespec.DurationWithin] does.
func ParseDuration(flag, s string, lo, hi time.Duration, allowZero bool) (time.Duration, error) {
	return ReadDuration("--"+flag, s, lo, hi, allowZero)
}

// ReadDuration is [ParseDuration] without a flag; its errors begin with what.
func ReadDuration(what, s string, lo, hi time.Duration, allowZero bool) (time.Duration, error) {
	d, err := timespec.DurationWithin(s, lo, hi, allowZero)
	if err != nil {
		return 0, Usagef("%s: %w", what, err)
	}
	return d, nil
}

// ReadNext reads a time to come as [timespec.ParseNext] does. Its errors begin with what: the flag, or the
// key, that holds s.
func ReadNext(what, s string, now time.Time) (time.Time, error) {
	t, err := timespec.ParseNext(s, now)
	if err != nil {
		return t, WithHint(Usagef("%s: %q %w", what, s, err), "%s", timespec.NextForms)
	}
	return t, nil
}
