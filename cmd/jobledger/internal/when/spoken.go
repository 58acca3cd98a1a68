package when

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SpokenForms is a hint at what [Spoken] reads of the past.
const SpokenForms = "give yesterday 02:00, tue 2pm, 15:04 (the last one), 24 dec, -2h, now, " +
	"2026-05-04T15:04:05+02:00 or pos:N"

// NextForms is a hint at what [Spoken] reads of a time to come.
const NextForms = "give tomorrow 06:00, fri 2pm, 15:04 (the next one), 24 dec, +10m, now or " +
	"2026-05-04T15:04:05+02:00"

// Heard is a moment that a user named.
type Heard struct {
	When
	// As is how a time without a zone was understood, with what the clocks do then; "": nothing was left open.
	As string
}

// Exact returns the moment to the microsecond, as [ParseWhen] reads it.
func (h Heard) Exact() string {
	if h.ByPos {
		return h.String()
	}
	return h.Time.Format("2006-01-02T15:04:05.999999Z07:00")
}

// Spoken reads s as people say moments: what [ParseWhen] reads, or a time of the day (02:00, 2pm, noon,
// midnight, teatime), a day (today, tomorrow, yesterday, tue, next tue, last tue, 24 dec, dec 24 2027,
// 2026-12-24), or both in either order, or now, and then any number of "+ N UNIT" and "- N UNIT". A day alone
// is its beginning. What is left open is the last such moment up to now, or with next the first one after
// now; without a zone it is in now's. A time that the clocks skip is the first moment after it; a time that
// they show twice is the first of the two. The text of an error is the end of a sentence that begins with s.
func Spoken(s string, now time.Time, next bool) (h Heard, err error) {
	h.When, err = ParseWhen(s, now)
	if err == nil && !IsClockTime(s) {
		if next && h.ByPos {
			err = errors.New("is not a time")
		}
		return h, err
	}
	words := strings.Fields(strings.ToLower(s))
	begin := slices.IndexFunc(words, func(word string) bool { return strings.IndexAny(word, "+-") == 0 })
	if begin < 0 {
		begin = len(words)
	}
	d, ok := readDay(words[:begin])
	steps, whole := readSteps(words[begin:])
	if !ok || !whole || len(words) == 0 {
		if err == nil || dateFirst().MatchString(s) {
			err = errors.New("is not a time")
		}
		return h, err
	}
	t, gap := now, false
	if begin > 0 && !d.now {
		if t, gap, ok = d.of(now, next); !ok {
			return h, errors.New("is not a day")
		}
	}
	for _, step := range steps {
		t = t.AddDate(0, step.months, step.days).Add(step.clock)
	}
	h.When = When{Time: t}
	if begin == 0 || d.now {
		return h, nil
	}
	layout := "Mon 2006-01-02 15:04 MST"
	if t.Second() > 0 {
		layout = "Mon 2006-01-02 15:04:05 MST"
	}
	h.As = t.Format(layout)
	if gap {
		h.As += ", the first moment after those that the clocks skip"
	} else if _, second, twice := Twice(t); twice && len(steps) == 0 {
		h.As += ", which the clocks show again at " + second.Format("15:04 MST")
	}
	return h, nil
}

// day is a day and a time of day as they were spoken. Parts that were not said have the zero value; clock is
// then -1.
type day struct {
	now     bool
	clock   time.Duration // since midnight
	from    int           // days from today, if fixed
	fixed   bool
	weekday int // 1 is Sunday
	side    int // 1: the next weekday after today, -1: the last one before
	month   time.Month
	date    int
	year    int
}

var (
	hours = map[string]string{"midnight": "0:00", "noon": "12:00", "teatime": "16:00"}
	days  = map[string]int{"today": 0, "tomorrow": 1, "yesterday": -1}
	sides = map[string]int{"next": 1, "last": -1}
	units = map[string]step{"second": {clock: time.Second}, "minute": {clock: time.Minute},
		"min": {clock: time.Minute}, "hour": {clock: time.Hour}, "day": {days: 1}, "week": {days: 7},
		"month": {months: 1}, "year": {months: 12}}
)

// named returns which of the names word is, in full or by its first three letters; 0: none.
func named(word string, count int, name func(int) string) int {
	for i := 1; i <= count; i++ {
		if full := strings.ToLower(name(i)); word == full || word == full[:3] {
			return i
		}
	}
	return 0
}

func weekdayOf(word string) int {
	return named(word, 7, func(i int) string { return time.Weekday(i - 1).String() })
}

func monthOf(word string) time.Month {
	return time.Month(named(word, 12, func(i int) string { return time.Month(i).String() }))
}

// digits is word as a number; 0: it is not a number, or has more digits than allowed.
func digits(word string, most int) int {
	n, err := strconv.ParseUint(word, 10, 31)
	if err != nil || len(word) > most {
		return 0
	}
	return int(n)
}

// readDay reads a time of the day, a day, or both; ok is false if words say anything else, or one twice.
func readDay(words []string) (d day, ok bool) {
	if d.clock = -1; len(words) == 1 && words[0] == "now" {
		return day{now: true}, true
	}
	for dated := false; len(words) > 0; {
		n := d.readDate(words)
		if n > 0 && dated {
			return d, false
		}
		if dated = dated || n > 0; n == 0 {
			clock, is := clockOf(words[0])
			if !is || d.clock >= 0 {
				return d, false
			}
			d.clock, n = clock, 1
		}
		words = words[n:]
	}
	return d, true
}

// readDate reads a day at the beginning of words, and returns how many of them it is.
func (d *day) readDate(words []string) int {
	from, fixed := days[words[0]]
	date, clock, both := strings.Cut(words[0], "t")
	dated, err := time.Parse(time.DateOnly, date)
	switch {
	case fixed:
		d.from, d.fixed = from, true
		return 1
	case weekdayOf(words[0]) > 0:
		d.weekday = weekdayOf(words[0])
		return 1
	case err == nil:
		d.year, d.month, d.date = dated.Date()
		if both && d.clock < 0 {
			d.clock, both = clockOf(clock)
			both = !both
		}
		if both {
			return 0
		}
		return 1
	case len(words) == 1:
		return 0
	case sides[words[0]] != 0:
		d.side, d.weekday = sides[words[0]], weekdayOf(words[1])
		return 2 * min(d.weekday, 1)
	}
	month, number := monthOf(words[0]), digits(words[1], 2)
	if month == 0 {
		month, number = monthOf(words[1]), digits(words[0], 2)
	}
	if month == 0 || number == 0 {
		return 0
	}
	d.month, d.date = month, number
	if len(words) > 2 && len(words[2]) == 4 && digits(words[2], 4) > 0 {
		d.year = digits(words[2], 4)
		return 3
	}
	return 2
}

// TimeOfDay reads a time of the day as [Spoken] does: how long after midnight it is.
func TimeOfDay(s string) (since time.Duration, ok bool) { return clockOf(strings.ToLower(s)) }

// clockOf is [TimeOfDay] of a word in lower case.
func clockOf(word string) (since time.Duration, ok bool) {
	if hour := hours[word]; hour != "" {
		word = hour
	}
	for _, layout := range []string{"15:04", "15:04:05", "3pm", "3:04pm"} {
		if t, err := time.Parse(layout, word); err == nil && len(word) <= len("15:04:05") {
			return time.Duration(t.Hour()*3600+t.Minute()*60+t.Second()) * time.Second, true
		}
	}
	return -1, false
}

// of returns the moment that d is at now, and whether it stands for one that the clocks skip; ok is false if
// there is no such day.
func (d day) of(now time.Time, next bool) (t time.Time, gap, ok bool) {
	year, month, date := now.Date()
	first, way, open := 0, -1, false
	if next {
		way = 1
	}
	switch {
	case d.fixed:
		first = d.from
	case d.side != 0:
		first, way = d.side, d.side
	case d.year > 0:
		year, month, date = d.year, d.month, d.date
	default:
		open = true
	}
	for i := range 8 * 366 {
		on := time.Date(year, month, date+first+i*way, 12, 0, 0, 0, time.UTC)
		if d.weekday > 0 && int(on.Weekday()) != d.weekday-1 || d.month > 0 && on.Month() != d.month ||
			d.date > 0 && on.Day() != d.date || d.year > 0 && on.Year() != d.year {
			continue
		}
		t, gap = onDay(on, max(d.clock, 0), now.Location())
		if !open || t.After(now) == next {
			return t, gap, true
		}
	}
	return t, gap, false
}

// step is a way from one moment to another. The clock shows the same after days and months, even if a day
// has 23 hours.
type step struct {
	months, days int
	clock        time.Duration
}

// readSteps reads "+ 2 hours - 10m" and the like; ok is false if words say anything else.
func readSteps(words []string) (steps []step, ok bool) {
	for len(words) > 0 {
		sign, found := words[0][0], false
		if words[0] = words[0][1:]; words[0] == "" {
			words = words[1:]
		}
		if sign != '+' && sign != '-' || len(words) == 0 {
			return nil, false
		}
		var one step
		if d, err := ParseDuration(words[0]); err == nil {
			one, words, found = step{clock: d}, words[1:], true
		} else if len(words) > 1 {
			n := digits(words[0], 6)
			one, found = units[strings.TrimSuffix(words[1], "s")]
			one = step{one.months * n, one.days * n, one.clock * time.Duration(n)}
			found, words = found && n > 0, words[2:]
		}
		if sign == '-' {
			one = step{-one.months, -one.days, -one.clock}
		}
		if steps = append(steps, one); !found {
			return nil, false
		}
	}
	return steps, true
}
