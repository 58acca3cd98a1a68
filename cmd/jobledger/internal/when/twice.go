package when

import "time"

// onDay returns the moment at which the clocks of a zone show the time that is so long since midnight, on the
// date of on: the first one, if they do twice, and the first one after those that they skip.
func onDay(on time.Time, since time.Duration, zone *time.Location) (t time.Time, gap bool) {
	year, month, date := on.Date()
	asked := time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Add(since)
	t = time.Date(year, month, date, 0, 0, int(since/time.Second), 0, zone)
	_, offset := t.Zone()
	begin, end := t.ZoneBounds()
	switch shown := t.Add(time.Duration(offset) * time.Second); {
	case shown.After(asked):
		return begin, true
	case shown.Before(asked):
		return end, true
	}
	t, _, _ = Twice(t)
	return t, false
}

// Twice returns both moments at which the clocks of t's zone show what they show at t; ok is false if t is
// the only one.
func Twice(t time.Time) (first, second time.Time, ok bool) {
	begin, end := t.ZoneBounds()
	_, offset := t.Zone()
	if !begin.IsZero() {
		_, before := begin.Add(-1).Zone()
		if other := t.Add(time.Duration(offset-before) * time.Second); other.Before(begin) {
			return other, t, true
		}
	}
	if !end.IsZero() {
		_, after := end.Zone()
		if other := t.Add(time.Duration(offset-after) * time.Second); !other.Before(end) {
			return t, other, true
		}
	}
	return t, t, false
}
