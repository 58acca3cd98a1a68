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

// localZone is the name of this machine's zone; "": it is not known.
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

// InUTC says what the first of times, which are UTC, is on a clock in zone: "02:30 is 03:30 here". It is
// empty where the clock always shows the same, or there are no times. next returns the first time after
// another one; zero: there is none.
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
