package when

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/projection/query"
)

// ReadWhen is [ParseWhen] of the value of a field of a question. Its error is a [query.InputError].
func ReadWhen(field, s string, now time.Time) (When, error) {
	w, err := ParseWhen(s, now)
	if err != nil {
		return w, &query.InputError{Field: field, Reason: fmt.Sprintf("%q %s", s, err), Hint: WhenForms}
	}
	return w, nil
}

// ReadDuration is [DurationWithin]; its errors begin with what: the flag, or the key, that holds s.
func ReadDuration(what, s string, lo, hi time.Duration, allowZero bool) (time.Duration, error) {
	d, err := DurationWithin(s, lo, hi, allowZero)
	if err != nil {
		return 0, fault.Usagef("%s: %w", what, err)
	}
	return d, nil
}

// ReadSpoken is [Spoken] of the value of a field of a question, of the past. Its error is a
// [query.InputError].
func ReadSpoken(field, s string, now time.Time) (Heard, error) {
	h, err := Spoken(s, now, false)
	if err != nil {
		return h, &query.InputError{Field: field, Reason: fmt.Sprintf("%q %s", s, err), Hint: SpokenForms}
	}
	return h, nil
}

// ReadNext is [ParseNext]; its errors begin with what.
func ReadNext(what, s string, now time.Time) (time.Time, error) {
	t, err := ParseNext(s, now)
	if err != nil {
		return t, fault.WithHint(fault.Usagef("%s: %q %w", what, s, err), "%s", NextTimeForms)
	}
	return t, nil
}
