package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobledger/ledger/event"
)

// LimitText says what b bounds.
func LimitText(b *event.QueueLimited) string {
	var parts []string
	rate := func(n int, per time.Duration, burst int, of string) {
		if n == 0 {
			return
		}
		text := fmt.Sprintf("at most %s%s", RateText(n, per), of)
		if burst > 1 {
			text += fmt.Sprintf(", %d of them at once", burst)
		}
		parts = append(parts, text)
	}
	if b.Group != "" {
		of := fmt.Sprintf(" of the group %q", b.Group)
		if b.Running > 0 {
			parts = append(parts, fmt.Sprintf("at most %d%s", b.Running, of))
		}
		if rate(b.Rate, b.RatePer, b.Burst, of); len(parts) == 0 {
			return fmt.Sprintf("no exception for the group %q", b.Group)
		}
		return strings.Join(parts, ", ")
	}
	if b.Running > 0 {
		parts = append(parts, fmt.Sprintf("at most %d at once", b.Running))
	}
	if b.PerGroup > 0 {
		parts = append(parts, fmt.Sprintf("at most %d of each group", b.PerGroup))
	}
	rate(b.Rate, b.RatePer, b.Burst, "")
	rate(b.GroupRate, b.GroupRatePer, b.GroupBurst, " of each group")
	if b.Ageing > 0 {
		parts = append(parts, fmt.Sprintf("one more of priority counts as %s of waiting", Duration(b.Ageing)))
	}
	if len(parts) == 0 {
		return "no limit"
	}
	return strings.Join(parts, ", ")
}

// BackoffText is b as --backoff takes it: "min 1s, max 1h, factor 2".
func BackoffText(b event.Backoff) string {
	return fmt.Sprintf("min %s, max %s, factor %s", Duration(b.Min), Duration(b.Max),
		strconv.FormatFloat(b.Factor, 'f', -1, 64))
}

// DefaultsText says what b sets.
func DefaultsText(b *event.QueueDefaults) string {
	var parts []string
	if b.MaxAttempts > 0 {
		parts = append(parts, fmt.Sprintf("up to %s", Count(int64(b.MaxAttempts), "attempt")))
	}
	if b.MaxRuntime > 0 {
		parts = append(parts, fmt.Sprintf("max runtime %s", Duration(b.MaxRuntime)))
	}
	if b.Backoff != (event.Backoff{}) {
		parts = append(parts, fmt.Sprintf("backoff %s", BackoffText(b.Backoff)))
	}
	if b.Commands {
		parts = append(parts, "jobs carry their commands")
	}
	if len(parts) == 0 {
		return "no defaults"
	}
	return strings.Join(parts, ", ")
}

// RateText is how many starts within a time: "100 starts in 1m".
func RateText(n int, per time.Duration) string {
	return fmt.Sprintf("%s in %s", Count(int64(n), "start"), Duration(per))
}

// SetBy says who set something, when and why; "": it was never set.
func SetBy(since time.Time, actor, reason string, zone *time.Location) string {
	if since.IsZero() {
		return ""
	}
	return fmt.Sprintf("set by %s at %s: %s", actor, Time(since.In(zone)), ReasonOrNone(reason))
}

// PolicyText is an archive policy as people write it.
func PolicyText(b *event.ArchivePolicy) string {
	if b.OlderThan == 0 {
		return "off"
	}
	text := "older-than " + Duration(b.OlderThan)
	if b.KeepFailed > 0 {
		text += ", keep-failed " + Duration(b.KeepFailed)
	}
	if b.RemoveLogs {
		text += ", logs remove"
	}
	if b.KeepBodies {
		text += ", bodies keep"
	}
	return text
}
