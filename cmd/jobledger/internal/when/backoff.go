package when

import (
	"fmt"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
)

// ParseBackoff reads "min 1s, max 1h, factor 2". What is left out is as in event.DefaultBackoff; a max that
// is left out is at least the min. The text of an error names s and what is allowed.
func ParseBackoff(s string) (b event.Backoff, err error) {
	b = event.DefaultBackoff
	given := make(map[string]bool)
	for part := range strings.SplitSeq(s, ",") {
		texts := strings.Fields(part)
		if len(texts) != 2 {
			return b, fmt.Errorf("%q is not a backoff, such as 'min 1s, max 1h, factor 2'", s)
		}
		name, value := texts[0], texts[1]
		if given[name] {
			return b, fmt.Errorf("%q has %s twice", s, name)
		}
		given[name] = true
		switch name {
		case "min":
			b.Min, err = DurationWithin(value, event.MinBackoff, event.MaxBackoff, false)
		case "max":
			b.Max, err = DurationWithin(value, event.MinBackoff, event.MaxBackoff, false)
		case "factor":
			if b.Factor, err = strconv.ParseFloat(value, 64); err != nil {
				err = fmt.Errorf("%q is not a number", value)
			}
		default:
			err = fmt.Errorf("%q is not min, max or factor", name)
		}
		if err != nil {
			return b, err
		}
	}
	if !given["max"] {
		b.Max = max(b.Max, b.Min)
	}
	switch {
	case b.Max < b.Min:
		return b, fmt.Errorf("%q has a max below its min, which is %s", s, words.Duration(b.Min))
	case !b.Valid():
		return b,
			fmt.Errorf("%q is out of range; times are in whole microseconds, and the factor is from 1 to %d, "+
				"with up to three decimals", s, event.MaxFactor)
	}
	return b, nil
}
