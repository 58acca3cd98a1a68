package render

import (
	"fmt"
	"strings"
	"time"
)

// Duration is d to the point, as parseDuration reads it: 90s is "1m30s", 24 hours are "1d".
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	days := d / (24 * time.Hour)
	text := (d - days*24*time.Hour).String() // 1h0m0s
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	switch {
	case days > 0 && text == "0s":
		return fmt.Sprintf("%dd", days)
	case days > 0:
		return fmt.Sprintf("%dd%s", days, text)
	}
	return text
}

// JSONTime is how every JSON output gives a time: RFC 3339, UTC, microseconds.
func JSONTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// Time is how tables give a time: with its offset, so that it can be pasted back into a flag.
func Time(t time.Time) string {
	return t.Format("2006-01-02 15:04:05-07:00")
}

// Millis is t as listings of events show it: with milliseconds and offset, valid as the value of a flag.
func Millis(t time.Time) string { return t.Format("2006-01-02 15:04:05.000-07:00") }

// Age is the distance from now to t in its two largest units: "3m12s ago", "in 2d4h".
func Age(t, now time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + Roughly(-d)
	}
	return Roughly(d) + " ago"
}

// Roughly is d in its two largest units.
func Roughly(d time.Duration) string {
	unit := 24 * time.Hour
	switch {
	case d < time.Hour:
		unit = time.Second
	case d < 24*time.Hour:
		unit = time.Minute
	case d < 100*24*time.Hour:
		unit = time.Hour
	}
	return Duration(d.Truncate(unit))
}

// Briefly is d in its two largest units, below a minute to the millisecond.
func Briefly(d time.Duration) string {
	if d < time.Minute {
		if d < time.Millisecond {
			return d.String()
		}
		return d.Truncate(time.Millisecond).String()
	}
	return Roughly(d)
}

// moment is t as seen from another moment: the time of day if both are on one day in zone, and the distance.
func moment(t, from time.Time, zone *time.Location) string {
	t, from = t.In(zone), from.In(zone)
	text := t.Format("15:04:05")
	if t.YearDay() != from.YearDay() || t.Year() != from.Year() {
		text = Time(t)
	}
	switch d := t.Sub(from); {
	case d > 0:
		return fmt.Sprintf("%s (in %s)", text, Briefly(d))
	case d < 0:
		return fmt.Sprintf("%s (%s before)", text, Briefly(-d))
	}
	return text
}

// Gap is [Briefly], without a unit that would only say how fast the machine is.
func Gap(d time.Duration) string {
	if d < time.Millisecond {
		return "0s"
	}
	return Briefly(d)
}
