// Package schedules derives the schedules from their events: what is enqueued when, and which tick is next.
// [Evolve] is pure. The events carry the next tick, so neither it nor a replay computes one.
//
// The files: schedule.go has the fold, table.go its rows, ticks.go what became of ticks.
//
// Held by TestHistoriesAreReadBackEqual of package projection, by TestKeeperSet,
// TestTickersOnJumpingClocks and TestVerifyFindsAlteredTimetable of package commands/schedule, and by
// TestScheduleTicks of the program. This package is not part of the Go API, and may change in any release.
package schedules

import (
	"fmt"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Schedule is the state of a schedule, derived from its events. The zero Schedule stands for a schedule that
// does not exist.
type Schedule struct {
	Spec     event.ScheduleSet // as it was set last, without Next and Reason
	Next     time.Time         // the next tick; zero: none, or it is paused
	LastTick time.Time         // the last that made a job; zero: none
	LastJob  int64             // the number of its last job, an operator's too; 0: none

	Paused bool
	Since  time.Time // of the last event that set, paused or resumed it
	Actor  string    // of that event
	Reason string    // of that event
}

// Exists reports whether there is such a schedule: it was set, and not removed since.
func (s Schedule) Exists() bool { return s.Spec.Name != "" }

// Kinds are the kinds of events that may concern a schedule.
func Kinds() []event.Kind {
	return []event.Kind{event.KindEnqueued, event.KindScheduleSet, event.KindSchedulePaused,
		event.KindScheduleResumed, event.KindScheduleRemoved, event.KindScheduleSkipped}
}

// Of returns the name of the schedule that an event with this body concerns; "" if it concerns none.
func Of(body event.Body) string {
	switch b := body.(type) {
	case *event.Enqueued:
		return b.Schedule
	case *event.ScheduleSet:
		return b.Name
	case *event.SchedulePaused:
		return b.Name
	case *event.ScheduleResumed:
		return b.Name
	case *event.ScheduleRemoved:
		return b.Name
	case *event.ScheduleSkipped:
		return b.Name
	}
	return ""
}

// Evolve returns s after e, the next event that concerns it. It returns projection.ErrIllegal if e cannot
// follow: each tick is the one that the previous event announced, so that no tick is missing or recorded
// twice.
func Evolve(s Schedule, e event.Event) (Schedule, error) {
	illegal := func(format string, args ...any) (Schedule, error) {
		return s, fmt.Errorf("%w: %s of schedule %s %s", projection.ErrIllegal, e.Kind(), Of(e.Body),
			fmt.Sprintf(format, args...))
	}
	if _, set := e.Body.(*event.ScheduleSet); !set && !s.Exists() {
		return illegal("that is not set")
	}
	switch b := e.Body.(type) {
	case *event.ScheduleSet:
		if s.Paused && !b.Next.IsZero() {
			return illegal("gives a paused one a next tick")
		}
		s.Spec, s.Next = *b, b.Next
		s.Spec.Next, s.Spec.Reason = time.Time{}, ""
		s.Since, s.Actor, s.Reason = e.At, e.Actor, b.Reason
	case *event.SchedulePaused:
		if s.Paused {
			return illegal("that is paused already")
		}
		s.Paused, s.Next = true, time.Time{}
		s.Since, s.Actor, s.Reason = e.At, e.Actor, b.Reason
	case *event.ScheduleResumed:
		if !s.Paused {
			return illegal("that is not paused")
		}
		s.Paused, s.Next = false, b.Next
		s.Since, s.Actor, s.Reason = e.At, e.Actor, b.Reason
	case *event.ScheduleRemoved:
		s = Schedule{}
	case *event.ScheduleSkipped:
		if why := s.advance(b.From, b.To, b.Next); why != "" {
			return illegal("%s", why)
		}
	case *event.Enqueued:
		s.LastJob = e.N
		if b.Tick.IsZero() {
			break
		}
		if why := s.advance(b.Tick, b.Tick, b.Next); why != "" {
			return illegal("%s", why)
		}
		s.LastTick = b.Tick
	default:
		return s, fmt.Errorf("%w: %T does not concern a schedule", ledger.ErrUnknownKind, e.Body)
	}
	return s, nil
}

// advance moves s past the ticks from first to last. It returns what is wrong with the value; "" if nothing
// is.
func (s *Schedule) advance(first, last, next time.Time) (wrong string) {
	switch {
	case s.Next.IsZero() || !first.Equal(s.Next):
		return fmt.Sprintf("at %s, while its next tick is %q", event.FormatTime(first), event.FormatTime(s.Next))
	case last.Before(first) || !next.IsZero() && !next.After(last):
		return fmt.Sprintf("to %s, with %s after that", event.FormatTime(last), event.FormatTime(next))
	}
	s.Next = next
	return ""
}
