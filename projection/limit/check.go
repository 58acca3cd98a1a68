package limit

import (
	"fmt"
	"time"

	"jobledger/ledger/event"
)

// Wrong returns the JSON name of the first field of s that is out of range, its value, and the range; "" if
// all are valid.
func (s Spec) Wrong() (field, got, allowed string) {
	const numbers, times = "0 to 1000000", "up to 31 days, in whole microseconds"
	switch {
	case s.Running < 0 || s.Running > event.MaxRunning:
		return "running", fmt.Sprint(s.Running), numbers
	case s.PerGroup < 0 || s.PerGroup > event.MaxRunning:
		return "per_group", fmt.Sprint(s.PerGroup), numbers
	case s.Ageing < 0 || s.Ageing > event.MaxRatePer || s.Ageing != s.Ageing.Truncate(time.Microsecond):
		return "ageing", s.Ageing.String(), times
	}
	if field, got, allowed = s.Rate.wrong(""); field == "" {
		field, got, allowed = s.PerGroupRate.wrong("group_")
	}
	return field, got, allowed
}

// wrong is Wrong of a rate; the names of its fields begin with prefix.
func (r Rate) wrong(prefix string) (field, got, allowed string) {
	switch {
	case r.N < 0 || r.N > event.MaxRunning:
		return prefix + "rate", fmt.Sprint(r.N), "0 to 1000000"
	case r.Per < 0 || r.Per > event.MaxRatePer || r.Per != r.Per.Truncate(time.Microsecond):
		return prefix + "rate_per", r.Per.String(), "up to 31 days, in whole microseconds"
	case (r.N > 0) != (r.Per > 0):
		return prefix + "rate_per", r.Per.String(), "a time with a rate, and none without"
	case r.Burst < 0 || r.Burst > event.MaxRunning || r.Burst > 0 && r.N == 0:
		return prefix + "burst", fmt.Sprint(r.Burst), "0 to 1000000 with a rate, and none without"
	}
	return "", "", ""
}
