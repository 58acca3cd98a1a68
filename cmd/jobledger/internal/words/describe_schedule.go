package words

import (
	"time"

	"jobledger/ledger/event"
)

// SkippedText says why ticks of a schedule made no job.
func SkippedText(why string) string {
	switch why {
	case event.SkippedMissed:
		return "a later one was due too"
	case event.SkippedLate:
		return "more than a minute late"
	case event.SkippedTooOld:
		return "older than the schedule permits"
	case event.SkippedTooMany:
		return "more than it catches up on"
	case event.SkippedOverlap:
		return "the job before it had not ended"
	case event.SkippedRefused:
		return "its job could not be enqueued"
	}
	return why
}

// TimesText says when a schedule ticks.
func TimesText(spec event.ScheduleSet) string {
	if spec.Every > 0 {
		return "every " + Duration(spec.Every)
	}
	return spec.Cron + " " + spec.Zone
}

func (d *description) schedule(body event.Body) {
	named := func(name, reason string) {
		d.add("schedule %s by %s", name, d.event.Actor)
		d.reason(reason)
	}
	next := func(t time.Time) { d.addIf(!t.IsZero(), "next at %s", d.moment(t)) }
	switch b := body.(type) {
	case *event.ScheduleSet:
		named(b.Name, b.Reason)
		d.add("%s into queue %s", TimesText(*b), b.Queue)
		next(b.Next)
	case *event.SchedulePaused:
		named(b.Name, b.Reason)
	case *event.ScheduleResumed:
		named(b.Name, b.Reason)
		next(b.Next)
	case *event.ScheduleRemoved:
		named(b.Name, b.Reason)
	case *event.ScheduleSkipped:
		named(b.Name, SkippedText(b.Why))
		d.add("%s from %s", Count(b.Count, "tick"), d.moment(b.From))
		d.reason(b.Detail)
		next(b.Next)
	}
}
