package when

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/words"
)

// DurationWithin reads s as [ParseDuration] does, and requires that it is from lo to hi (0: no upper limit);
// zero is accepted only if allowZero. The text of an error names s and the range.
func DurationWithin(s string, lo, hi time.Duration, allowZero bool) (time.Duration, error) {
	d, err := ParseDuration(s)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q %w; give a duration %s, such as 90s or 1h30m", s, err, span(lo, hi, allowZero))
	case d == 0 && allowZero:
		return 0, nil
	case d == 0 || d < lo || hi > 0 && d > hi:
		return 0, fmt.Errorf("%s is out of range; give a duration %s", s, span(lo, hi, allowZero))
	}
	return d, nil
}

// span describes the range of a duration.
func span(lo, hi time.Duration, allowZero bool) string {
	switch {
	case lo == 0 && hi == 0 && allowZero:
		return "of 0s or more"
	case lo == 0 && hi == 0:
		return "above 0s"
	case lo == 0 && !allowZero:
		return "above 0s and up to " + words.Duration(hi)
	}
	text := "of at least " + words.Duration(lo)
	if hi > 0 {
		text = "from " + words.Duration(lo) + " to " + words.Duration(hi)
	}
	if allowZero && lo > 0 {
		text += ", or 0s"
	}
	return text
}

var wholeDays = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+)d(.*)$`)
})

// ParseDuration reads the syntax of time.ParseDuration without a sign, preceded by days of 24 hours: 90s,
// 1h30m, 1d12h. The text of an error is the end of a sentence that begins with s.
func ParseDuration(s string) (time.Duration, error) {
	var days time.Duration
	rest := s
	if m := wholeDays().FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil || n > int64(math.MaxInt64/(24*time.Hour)) {
			return 0, errors.New("is too long")
		}
		days, rest = time.Duration(n)*24*time.Hour, m[2]
		if rest == "" {
			return days, nil
		}
	}
	if strings.HasPrefix(rest, "-") {
		return 0, errors.New("is negative")
	}
	d, err := time.ParseDuration(rest)
	switch {
	case err == nil && !strings.HasPrefix(rest, "+") && rest != "0":
		if d > math.MaxInt64-days {
			return 0, errors.New("is too long")
		}
		return d + days, nil
	case numeric(rest):
		return 0, errors.New("has no unit")
	case err != nil && numeric(strings.TrimRight(rest, "nuµmsh")):
		return 0, errors.New("is too long")
	}
	return 0, errors.New("is not a duration")
}

// numeric reports whether s is a decimal number.
func numeric(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.") == ""
}
