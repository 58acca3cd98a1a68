package words

import (
	"fmt"
	"strings"
	"time"

	"jobledger/ledger/event"
)

// DurationIfAny is Duration, and "" for none.
func DurationIfAny(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return Duration(d)
}

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
	return event.FormatTime(t)
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

// recent is how far from now a time may be and still be shown as a distance from it.
const recent = 48 * time.Hour

// Recent reports whether t is within 48 hours of now.
func Recent(t, now time.Time) bool { return now.Sub(t).Abs() <= recent }

// Date is t in the zone of now, to the minute, as a flag reads it: "2026-03-15 14:02+00:00".
func Date(t, now time.Time) string { return t.In(now.Location()).Format("2006-01-02 15:04-07:00") }

// AgeOrDate is Age for a time within 48 hours of now, beyond that the Date.
func AgeOrDate(t, now time.Time) string {
	if Recent(t, now) {
		return Age(t, now)
	}
	return Date(t, now)
}

// AgeOrOn is AgeOrDate within a sentence: "3m12s ago", "on 2026-03-15 14:02+00:00".
func AgeOrOn(t, now time.Time) string {
	if Recent(t, now) {
		return Age(t, now)
	}
	return "on " + Date(t, now)
}

// Since is how long t has been, in its two largest units; beyond 48 hours it is the Date. A time to come has
// been for no time.
func Since(t, now time.Time) string {
	if Recent(t, now) {
		return Roughly(max(0, now.Sub(t)))
	}
	return Date(t, now)
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
