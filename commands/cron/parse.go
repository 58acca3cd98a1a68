package cron

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Schedule is a parsed expression in a time zone, or a period. The zero Schedule never ticks.
type Schedule struct {
	minutes, hours, days, months, weekdays uint64 // a bit for each value

	realTime  bool // the minute or the hour begins with *: real minutes, not the time on the wall
	eitherDay bool // both day fields are restricted: a day that matches one of them is enough
	zone      *time.Location

	every time.Duration // instead of the fields
	from  time.Time     // the first tick of a period
}

// SyntaxError says what is wrong with an expression, a zone or a period.
type SyntaxError struct{ What, Value, Want string }

// Error returns what is wrong, and what is allowed.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s %.80q: want %s", e.What, e.Value, e.Want)
}

// field is one of the five: its name, range, and the names of its values from the lowest on.
type field struct {
	name   string
	lo, hi int
	words  []string
}

var (
	monthWords = strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")
	dayWords   = strings.Fields("sun mon tue wed thu fri sat")

	fiveFields = [5]field{{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of the month", 1, 31, nil},
		{"month", 1, 12, monthWords}, {"day of the week", 0, 7, dayWords}}
)

var macros = map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
	"@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}

// Parse reads five fields or a name such as @daily. A nil zone is UTC. It returns a SyntaxError for anything
// else, and for days that never come, such as 31 February.
func Parse(expression string, zone *time.Location) (Schedule, error) {
	bad := func(want string) (Schedule, error) {
		return Schedule{}, &SyntaxError{"cron expression", expression, want}
	}
	text := strings.ToLower(strings.TrimSpace(expression))
	if strings.HasPrefix(text, "@") {
		full, ok := macros[text]
		if !ok {
			return bad("@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, or five fields; a period " +
				"is given apart, as every")
		}
		text = full
	}
	parts := strings.Fields(text)
	if len(parts) > 0 && strings.Contains(parts[0], "=") {
		return bad("five fields; the time zone is given apart")
	}
	if len(parts) != len(fiveFields) {
		return bad("five fields: minute hour day-of-month month day-of-week")
	}
	var sets [5]uint64
	for i, f := range fiveFields {
		var err error
		if sets[i], err = f.parse(parts[i]); err != nil {
			return bad(err.Error())
		}
	}
	if sets[4]&(1<<7) != 0 {
		sets[4] = sets[4]&^(1<<7) | 1
	}
	if zone == nil {
		zone = time.UTC
	}
	s := Schedule{minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4],
		realTime:  strings.HasPrefix(parts[0], "*") || strings.HasPrefix(parts[1], "*"),
		eitherDay: !strings.HasPrefix(parts[2], "*") && !strings.HasPrefix(parts[4], "*"), zone: zone}
	if !s.possible() {
		return bad("a day that one of its months has")
	}
	return s, nil
}

// Every returns the schedule that ticks at from and each d after it. d is in whole seconds, from 1 s to 10
// years; from is truncated to a second.
func Every(d time.Duration, from time.Time) (Schedule, error) {
	if d < time.Second || d%time.Second != 0 || d > 10*366*24*time.Hour {
		return Schedule{}, &SyntaxError{"period", d.String(), "whole seconds, from 1s to 10 years"}
	}
	return Schedule{every: d, from: from.UTC().Truncate(time.Second)}, nil
}

// parse returns the values that text, a list in lower case, stands for.
func (f field) parse(text string) (set uint64, err error) {
	for _, item := range strings.Split(text, ",") {
		bits, err := f.parseItem(item)
		if err != nil {
			return 0, fmt.Errorf("as %s %w, not %q", f.name, err, item)
		}
		set |= bits
	}
	return set, nil
}

func (f field) parseItem(item string) (set uint64, err error) {
	span, stepText, stepped := strings.Cut(item, "/")
	first, last, ranged := strings.Cut(span, "-")
	lo, hi := f.lo, f.last() // with * each day of the week is one day
	switch {
	case span == "*":
	case ranged:
		if lo, err = f.value(first); err != nil {
			return 0, err
		}
		if hi, err = f.value(last); err != nil {
			return 0, err
		}
		if f.hi == 7 && hi == 0 && lo > 0 {
			hi = 7 // sat-sun, 6-0
		}
		if hi < lo {
			return 0, fmt.Errorf("a range that ends after it begins, or two such as %s,%s",
				spanText(lo, f.last()), spanText(f.lo, hi))
		}
	case stepped:
		return 0, fmt.Errorf("a step after * or a range, such as %d-%d/%s", f.lo, f.hi, stepText)
	default:
		if lo, err = f.value(span); err != nil {
			return 0, err
		}
		hi = lo
	}
	step := 1
	if stepped {
		if step, err = number(stepText); err != nil || step == 0 || step > f.hi-f.lo+1 {
			return 0, fmt.Errorf("a step from 1 to %d", f.hi-f.lo+1)
		}
	}
	for v := lo; v <= hi; v += step {
		set |= 1 << v
	}
	return set, nil
}

// spanText is the range as an expression has it.
func spanText(lo, hi int) string {
	if lo == hi {
		return strconv.Itoa(lo)
	}
	return fmt.Sprintf("%d-%d", lo, hi)
}

// last returns the largest value; the day 7 is the day 0 again.
func (f field) last() int {
	if f.hi == 7 {
		return 6
	}
	return f.hi
}

// value reads a number, or a name of the field.
func (f field) value(text string) (int, error) {
	for i, word := range f.words {
		if text == word {
			return f.lo + i, nil
		}
		if strings.HasPrefix(text, word) {
			return 0, fmt.Errorf("%q, the first three letters of the name", word)
		}
	}
	v, err := number(text)
	if err != nil || v < f.lo || v > f.hi {
		want := fmt.Sprintf("a number from %d to %d", f.lo, f.hi)
		if f.words != nil {
			want += fmt.Sprintf(", or %s to %s", f.words[0], f.words[len(f.words)-1])
		}
		return 0, errors.New(want)
	}
	return v, nil
}

// number reads one or two digits; a sign is not part of a number here.
func number(text string) (int, error) {
	if len(text) > 2 || strings.Trim(text, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(text)
}

// possible reports whether any month of the schedule has any day of it.
func (s Schedule) possible() bool {
	if s.eitherDay {
		return true // each month has every day of the week
	}
	for m := 1; m <= 12; m++ {
		if s.months>>m&1 != 0 && s.days&(1<<(daysIn(2000, time.Month(m))+1)-1) != 0 {
			return true // in a leap year, in which each date falls on each day of the week in the end
		}
	}
	return false
}

// daysIn returns the number of days of a month.
func daysIn(year int, m time.Month) int { return time.Date(year, m+1, 0, 0, 0, 0, 0, time.UTC).Day() }
