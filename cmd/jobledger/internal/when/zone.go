package when

import (
	"os"
	"strings"
	"sync"
	"time"
)

// ZoneName is the name of zone in the IANA database, even if zone is [time.Local]; "": it is not known.
func ZoneName(zone *time.Location) string {
	if zone.String() == "Local" {
		return localZone()
	}
	return zone.String()
}

// localZone is the name of this machine's zone; "": unknown.
var localZone = sync.OnceValue(func() string {
	name, set := os.LookupEnv("TZ")
	if name = strings.TrimPrefix(name, ":"); !set {
		target, err := os.Readlink("/etc/localtime")
		if err != nil {
			return ""
		}
		_, name, _ = strings.Cut(target, "zoneinfo/")
	}
	if _, err := time.LoadLocation(name); err != nil || name == "" || name == "Local" {
		return ""
	}
	return name
})

// InUTC converts the first of times, which are in UTC, to a clock in zone: "02:30 is 03:30 here". It is empty
// where the clock always shows the same, or there are no times. next returns the first time after another
// one; zero: there is none.
func InUTC(next func(time.Time) time.Time, now time.Time, zone *time.Location) string {
	for _, begin := range []time.Time{now, now.AddDate(0, 6, 0)} { // summer time
		t := next(begin)
		if _, offset := t.In(zone).Zone(); t.IsZero() || offset == 0 {
			continue
		}
		on := ""
		if !begin.Equal(now) {
			on = t.UTC().Format(" on 2 Jan")
		}
		return t.UTC().Format("15:04") + on + " is " + t.In(zone).Format("15:04") + " here"
	}
	return ""
}

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
