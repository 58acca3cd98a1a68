package verdict

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/inbox"
	"jobledger/projection/limit"
	"jobledger/projection/schedules"
	"jobledger/projection/status"
)

// Level says how urgent a problem is.
type Level int

// The levels.
const (
	Note    Level = iota // for information: it heals, or is meant so
	Warning              // may need attention
	Trouble              // needs attention
)

// Code names a rule, as doctor prints it. It is for ever.
type Code string

// The codes of the rules.
const (
	Leases   Code = "D20" // leases that ran out and were not swept
	Silent   Code = "D21" // workers without a sign of life
	Paused   Code = "D22" // paused queues with ready jobs
	Stranded Code = "D23" // ready jobs that no worker can take
	Failing  Code = "D41" // a queue whose attempts fail
	Behind   Code = "D42" // jobs that wait for longer than is normal
	Version  Code = "D43" // a new version fails more often than the one before
	Schedule Code = "D44" // a schedule that is not carried out, or whose job failed
	GaveUp   Code = "D45" // jobs that failed for good
	Lost     Code = "D46" // jobs that were taken back from a worker that let their leases run out
	Inbox    Code = "D49" // rows of the inbox that no process moves, or that were refused
)

// Codes are all codes, in order.
var Codes = []Code{Leases, Silent, Paused, Stranded, Failing, Behind, Version, Schedule, GaveUp, Lost, Inbox}

// Problem is what one rule found about one thing. Which fields are set depends on the rule.
type Problem struct {
	Code  Code // "": the note has none
	Level Level
	Queue string    // "": it is about workers, or about a schedule
	Since time.Time // zero: it is not known

	Jobs     int64 // that it is about: they wait, failed for good, were lost, are held, or only asked for
	Attempts int64 // that ended
	Failed   int64 // of these
	Minutes  int64 // within which

	Before  float64       // Failing, Version: the share that failed before; -1: it is not known
	Normal  time.Duration // Behind: how long jobs wait at most, normally; 0: it is not known
	ClearIn time.Duration // Behind: when the jobs that wait are claimed, at this rate; 0: never
	Limit   bool          // Behind: a limit is reached
	Idle    bool          // Behind: no worker holds a job of the queue

	From, To string                 // Version
	Pause    projection.Queue       // Paused
	Stranded status.Stranded        // Stranded
	Workers  []status.Worker        // Silent
	Commands []projection.LostClaim // without a code: they may still run
	Schedule schedules.Schedule     // Schedule
	LastJob  projection.Job         // Schedule: its last job, if that failed for good
	Skipped  int64                  // Schedule: ticks without a job since the last one
	Refused  inbox.Refused          // Inbox: the row that was refused first; its N is 0: the rows wait
	Cause    *Cause                 // Failing, Version, GaveUp, Lost: the commonest failure; nil: not looked for

	Also []Code // what else was found about the same thing, and is not listed
}

// Cause is what the failures of a problem have in common, most of them.
type Cause struct {
	Code     string // the error code, or the reason
	Exit     *int   // nil: there is none
	Detail   string // the first line of the last one
	Attempts int64
	Jobs     int64
	Workers  []string // the names of those that had the jobs
}

// Facts are what the rules look at: a ledger at one moment.
type Facts struct {
	At        time.Time
	Queues    []status.Queue // with Stranded
	Workers   []status.Worker
	Recent    *Recent // nil: what happened is not known, and the rules about that do not run
	Limited   []status.Limited
	Claimable map[string]time.Time // since when the first job waits whose group has room; see [Facts.Crowded]
	Schedules []Timetable
	Inbox     inbox.Counts
	Refused   inbox.Refused // the row of the inbox that was refused first; N is 0: there is none
}

// Timetable is a schedule and what became of its last ticks.
type Timetable struct {
	schedules.Schedule
	Last    projection.Job // its last job; the zero Job: there is none
	Skipped int64          // ticks without a job since that
	Since   time.Time      // when the first of them was skipped
}

// Judge returns what the rules find, the most urgent first. What several rules found about one thing is one
// problem.
func (f Facts) Judge() (found []Problem) {
	for _, q := range f.Queues {
		found = append(found, merge(append(f.ofQueue(q), f.ofCourse(q)...))...)
	}
	found = append(found, f.silent()...)
	found = append(found, f.inbox()...)
	for _, t := range f.Schedules {
		found = append(found, f.schedule(t, found)...)
	}
	slices.SortStableFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), strings.Compare(string(a.Code), string(b.Code)))
	})
	return found
}

// limitOf returns the limits of a queue, and what they bind; nil: it has none.
func (f Facts) limitOf(queue string) *status.Limited {
	i := slices.IndexFunc(f.Limited, func(l status.Limited) bool { return l.Queue == queue })
	if i < 0 {
		return nil
	}
	return &f.Limited[i]
}

// Waited reports whether jobs of a queue have waited for long enough that its limits matter.
func (f Facts) Waited() bool {
	return slices.ContainsFunc(f.Queues, func(q status.Queue) bool { return waited(q, f.At) >= late })
}

// Crowded returns the queues for which it must be known since when the first job waits whose group has room:
// their jobs have waited, and their limits are about groups.
func (f Facts) Crowded() (queues []string) {
	for _, q := range f.Queues {
		l := f.limitOf(q.Name)
		if l != nil && waited(q, f.At) >= late && groupLimits(l.Limit) {
			queues = append(queues, q.Name)
		}
	}
	return queues
}

func groupLimits(l limit.Limit) bool {
	return l.PerGroup > 0 || l.HasGroupRates() || len(l.ActiveExceptions()) > 0
}

// waited is how long the first ready job of a queue that is not paused has waited.
func waited(q status.Queue, now time.Time) time.Duration {
	if q.Paused || q.OldestReady.IsZero() {
		return 0
	}
	return now.Sub(q.OldestReady)
}

// merge removes the problems of a queue that another of its problems explains.
func merge(found []Problem) (kept []Problem) {
	explains := map[Code][]Code{
		Failing:  {Version, GaveUp, Lost, Behind},
		Version:  {GaveUp},
		Lost:     {Behind},
		Stranded: {Behind, Leases},
		Paused:   {Behind},
	}
	for i := range found {
		p := &found[i]
		by := slices.IndexFunc(found, func(o Problem) bool {
			return o.Level >= Warning && o.Level >= p.Level-1 && slices.Contains(explains[o.Code], p.Code)
		})
		if by < 0 || p.Level == Note {
			continue
		}
		found[by].Also = append(found[by].Also, p.Code)
		found[by].Level = max(found[by].Level, p.Level)
		p.Code = "dropped"
	}
	for _, p := range found {
		if p.Code != "dropped" {
			kept = append(kept, p)
		}
	}
	return kept
}

// held is how many jobs of a queue workers hold.
func held(q status.Queue) int64 { return q.Jobs[event.ClaimedState] + q.Jobs[event.Running] }
