package cli

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
)

// When is a moment that the user gave: a time, or a position in the ledger.
type When struct {
	Time  time.Time // zero where ByPos
	Pos   int64     // 0 is the ledger before its first event
	ByPos bool
}

// String returns w as ParseWhen reads it.
func (w When) String() string {
	if w.ByPos {
		return "pos:" + strconv.FormatInt(w.Pos, 10)
	}
	return render.Time(w.Time)
}

const whenForms = "give now, 2026-05-04T15:04:05+02:00, 15:04 (the last one), -2h, -1d, +10m or pos:N"

// whenLayouts are RFC 3339, the times in the tables of this program, and times without seconds.
var whenLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00",
}

var (
	ClockTime = regexp.MustCompile(`^([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?$`)
	dateFirst = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}`)
	zoneLast  = regexp.MustCompile(`(Z|[+-][0-9]{2}:?[0-9]{2})$`)
)

// ParseWhen reads the value of a flag. It accepts RFC 3339 with a zone, also with a space for the T or
// without seconds; now; 15:04 or 15:04:05, the last one up to now in now's zone; -2h, -1d12h, +10m, relative
// to now; and pos:N. A date without a zone is refused, because a ledger is read on more than one machine.
func ParseWhen(flag, s string, now time.Time) (When, error) {
	w, err := ReadWhen(s, now)
	if err != nil {
		return When{}, WithHint(Usagef("--%s: %q %w", flag, s, err), "%s", whenForms)
	}
	return w, nil
}

// ReadWhen is [ParseWhen] without a flag. Its errors are the end of a sentence that begins with the value.
func ReadWhen(s string, now time.Time) (When, error) {
	refuse := func(why string) (When, error) { return When{}, errors.New(why) }
	if pos, ok := strings.CutPrefix(s, "pos:"); ok {
		n, err := strconv.ParseUint(pos, 10, 63)
		if err != nil {
			return refuse("is not pos: and a whole number")
		}
		return When{Pos: int64(n), ByPos: true}, nil
	}
	if s == "" {
		return refuse("is no time")
	}
	if s == "now" {
		return When{Time: now}, nil
	}
	if s[0] == '-' || s[0] == '+' {
		d, err := readDuration(s[1:])
		if err != nil {
			return refuse("is no time from now: " + err.Error())
		}
		if s[0] == '-' {
			d = -d
		}
		return When{Time: now.Add(d)}, nil
	}
	if m := ClockTime.FindStringSubmatch(s); m != nil {
		hour, _ := strconv.Atoi(m[1])
		minute, _ := strconv.Atoi(m[2])
		second, _ := strconv.Atoi(m[3]) // 0 where there is none
		at := func(daysAgo int) time.Time {
			return time.Date(now.Year(), now.Month(), now.Day()-daysAgo, hour, minute, second, 0, now.Location())
		}
		if t := at(0); !t.After(now) {
			return When{Time: t}, nil
		}
		return When{Time: at(1)}, nil
	}
	for _, layout := range whenLayouts {
		if t, err := time.Parse(layout, strings.ToUpper(s)); err == nil {
			return When{Time: t}, nil
		}
	}
	if d, err := readDuration(s); err == nil && d > 0 {
		return refuse("could be past or future: put - or + in front")
	}
	if dateFirst.MatchString(s) && !zoneLast.MatchString(s[len("2006-01"):]) {
		return refuse("has no time zone: add Z or an offset such as +02:00")
	}
	return refuse("is no time")
}

// ParseDuration reads the value of a flag as a duration from lo to hi (0: no upper limit); zero is accepted
// only if allowZero. It accepts the syntax of time.ParseDuration without a sign, preceded by days of 24
// hours: 90s, 1h30m, 1d12h.
func ParseDuration(flag, s string, lo, hi time.Duration, allowZero bool) (time.Duration, error) {
	return ReadDuration("--"+flag, s, lo, hi, allowZero)
}

// ReadDuration is [ParseDuration] without a flag; its errors begin with what.
func ReadDuration(what, s string, lo, hi time.Duration, allowZero bool) (time.Duration, error) {
	d, err := readDuration(s)
	switch {
	case err != nil:
		return 0, Usagef("%s: %q %w; give a duration %s, such as 90s or 1h30m", what, s, err,
			span(lo, hi, allowZero))
	case d == 0 && allowZero:
		return 0, nil
	case d == 0 || d < lo || hi > 0 && d > hi:
		return 0, Usagef("%s: %s is out of range; give a duration %s", what, s, span(lo, hi, allowZero))
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
		return "above 0s and up to " + render.Duration(hi)
	}
	text := "of at least " + render.Duration(lo)
	if hi > 0 {
		text = "from " + render.Duration(lo) + " to " + render.Duration(hi)
	}
	if allowZero && lo > 0 {
		text += ", or 0s"
	}
	return text
}

var wholeDays = regexp.MustCompile(`^([0-9]+)d(.*)$`)

// readDuration reads a duration without a sign. Its errors are the end of a sentence that begins with the
// value.
func readDuration(s string) (time.Duration, error) {
	var days time.Duration
	rest := s
	if m := wholeDays.FindStringSubmatch(s); m != nil {
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
	return 0, errors.New("is no duration")
}

// numeric reports whether s is a decimal number.
func numeric(s string) bool {
	return s != "" && strings.Trim(s, "0123456789.") == ""
}
