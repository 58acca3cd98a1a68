package schedule

import (
	"time"

	"jobledger/commands/cron"
	"jobledger/ledger/event"
	"jobledger/projection/schedules"
)

const (
	// maxCaughtUp is how many missed ticks catch-up of all runs.
	maxCaughtUp = 1000

	// onTime is how late a tick may be to count as not missed where missed ones make no job.
	onTime = time.Minute

	// maxDue is how many ticks of a schedule are judged at once.
	maxDue = 20_000
)

// step is what comes of one tick that is due, or of several in a row that make no job for the same reason.
type step struct {
	from, to time.Time
	count    int64
	why      string    // it makes no job; "": it does, and from is the tick
	next     time.Time // the tick after to
}

// plan returns what comes of the ticks of s that are due now. It is pure.
func plan(s schedules.Schedule, times cron.Schedule, now time.Time) (steps []step) {
	due, next := dueTicks(s.Next, times, now)
	more := !next.IsZero() && !next.After(now) // these are judged when they come first
	for i, tick := range due {
		after := next
		if i+1 < len(due) {
			after = due[i+1]
		}
		why := judge(s.Spec, now.Sub(tick), len(due)-1-i, more)
		if last := len(steps) - 1; why != "" && last >= 0 && steps[last].why == why {
			steps[last].to, steps[last].next = tick, after
			steps[last].count++
			continue
		}
		steps = append(steps, step{tick, tick, 1, why, after})
	}
	return steps
}

// dueTicks returns the ticks from first on that are due now, up to maxDue, and the one after those.
func dueTicks(first time.Time, times cron.Schedule, now time.Time) (due []time.Time, next time.Time) {
	for next = first; !next.IsZero() && !next.After(now) && len(due) < maxDue; next = times.Next(next) {
		due = append(due, next)
	}
	return due, next
}

// judge returns why a tick that is late by so much makes no job, "" if it makes one. later is how many ticks
// after it are due too, and more says that there are yet more.
func judge(spec event.ScheduleSet, late time.Duration, later int, more bool) string {
	switch {
	case spec.Within > 0 && late > spec.Within:
		return event.SkippedTooOld
	case spec.CatchUp == event.CatchUpLast && (later > 0 || more):
		return event.SkippedMissed
	case spec.CatchUp == event.CatchUpNone && late > onTime:
		return event.SkippedLate
	case spec.CatchUp == event.CatchUpAll && (later >= maxCaughtUp || more):
		return event.SkippedTooMany
	}
	return ""
}
