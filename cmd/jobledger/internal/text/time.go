package text

import (
	"fmt"
	"strings"
	"time"
)

// JSONTime formats t as every JSON output does: RFC 3339, UTC, microseconds.
func JSONTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// FormatTime formats t as tables do: with its offset, so that it can be pasted back into a flag.
func FormatTime(t time.Time) string {
	return t.Format("2006-01-02 15:04:05-07:00")
}

// FormatDuration formats d exactly and briefly: 90s is "1m30s", 24 hours are "1d".
func FormatDuration(d time.Duration) string {
	if d < 0 {
		return "-" + FormatDuration(-d)
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

// Age formats the distance from now to t in its two largest units: "3m12s ago", "in 2d4h".
func Age(t, now time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		return "in " + Roughly(-d)
	}
	return Roughly(d) + " ago"
}

// Roughly formats d in its two largest units.
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
	return FormatDuration(d.Truncate(unit))
}

// Briefly formats d in its two largest units, below a minute to the millisecond.
func Briefly(d time.Duration) string {
	if d < time.Minute {
		if d < time.Millisecond {
			return d.String()
		}
		return d.Truncate(time.Millisecond).String()
	}
	return Roughly(d)
}
