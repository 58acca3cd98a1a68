package when

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobledger/projection/query"
)

// When is a moment that the user gave.
type When = query.When

// WhenForms says what [ParseWhen] accepts, for a hint.
const WhenForms = "give now, 2026-05-04T15:04:05+02:00, 15:04 (the last one), -2h, -1d, +10m or pos:N"

// whenLayouts are RFC 3339, the times in the tables of this program, and times without seconds.
var whenLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00",
}

var (
	dateFirst = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}`)
	})
	zoneLast = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(Z|[+-][0-9]{2}:?[0-9]{2})$`)
	})
)

// ParseWhen reads s. It accepts RFC 3339 with a zone, also with a space for the T or without seconds; now;
// 15:04 or 15:04:05, the last one up to now in now's zone; -2h, -1d12h, +10m, relative to now; and pos:N, or
// pos:N@TIME with a time of RFC 3339: after that event, when the clock said so. A
// date without a zone is refused, because a ledger is read on more than one machine. The text of an error is
// the end of a sentence that begins with s.
func ParseWhen(s string, now time.Time) (When, error) {
	refuse := func(why string) (When, error) { return When{}, errors.New(why) }
	if pos, ok := strings.CutPrefix(s, "pos:"); ok {
		pos, clock, timed := strings.Cut(pos, "@")
		n, err := strconv.ParseUint(pos, 10, 63)
		if err != nil {
			return refuse("is not pos: and a whole number")
		}
		w := When{Pos: int64(n), ByPos: true}
		if timed {
			if w.Time, err = time.Parse(time.RFC3339Nano, clock); err != nil {
				return refuse("has after @ no time such as 2026-05-04T15:04:05Z")
			}
		}
		return w, nil
	}
	if s == "" {
		return refuse("is not a time")
	}
	if s == "now" {
		return When{Time: now}, nil
	}
	if s[0] == '-' || s[0] == '+' {
		d, err := ParseDuration(s[1:])
		if err != nil {
			return refuse("is not a time from now: " + err.Error())
		}
		if s[0] == '-' {
			d = -d
		}
		return When{Time: now.Add(d)}, nil
	}
	if IsClockTime(s) {
		clock, _ := clockOf(s)
		t, _, _ := day{clock: clock}.of(now, false)
		return When{Time: t}, nil
	}
	for _, layout := range whenLayouts {
		if t, err := time.Parse(layout, strings.ToUpper(s)); err == nil {
			return When{Time: t}, nil
		}
	}
	if d, err := ParseDuration(s); err == nil && d > 0 {
		return refuse("could be past or future: put - or + in front")
	}
	if dateFirst().MatchString(s) && !zoneLast().MatchString(s[len("2006-01"):]) {
		return refuse("has no time zone: add Z or an offset such as +02:00")
	}
	return refuse("is not a time")
}

// NextTimeForms is a hint at what [ParseNext] reads.
const NextTimeForms = "give now, 2026-05-04T15:04:05+02:00, 15:04 (the next one) or +10m"

// IsClockTime reports whether s is a time of the day, such as 15:04 or 15:04:05.
func IsClockTime(s string) bool {
	_, ok := clockOf(s)
	return ok && s[0] <= '9' && s[len(s)-1] <= '9'
}

// ParseNext is [ParseWhen] for a time to come: 15:04 is the next one, and a place in the ledger is none.
func ParseNext(s string, now time.Time) (time.Time, error) {
	w, err := ParseWhen(s, now)
	if IsClockTime(s) {
		clock, _ := clockOf(s)
		w.Time, _, _ = day{clock: clock}.of(now, true)
	}
	if err == nil && w.ByPos {
		err = errors.New("is not a time")
	}
	return w.Time, err
}
