package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/internal/fingerprint"
)

// FailuresBy is the property by which failures are grouped.
type FailuresBy int

// What failures are grouped by.
const (
	ByCode  FailuresBy = iota // the error code, or the reason
	ByQueue                   // the queue too
	ByCause                   // the queue, and the fingerprint: how it ended, and the last line of its detail
)

// failed are the outcomes that [Failures] are about unless it is asked for others.
var failed = []event.Kind{event.KindFailed, event.KindReclaimed}

// Failures asks which attempts failed, or were taken back from their worker, within a window.
type Failures struct {
	Span
	By       FailuresBy
	Outcomes []event.Kind // failed, reclaimed or released; none: failed and reclaimed
	Limit    int          // at most so many groups; 0: no limit
	Steps    int          // so many steps of one length, for [FailureGroup.Steps]; 0: none
	Jobs     bool         // also what became of the jobs, and how many attempts of the queue ended
	GivenUp  bool         // with Jobs: only the groups by which jobs failed for good, last
}

// FailureGroup are failures that have something in common.
type FailureGroup struct {
	Queue       string          // "": of several; see [FailuresBy]
	Code        string          // the error code of failed attempts, the reason of those taken back or released
	ID          string          // the fingerprint, by cause; it selects jobs, see [projection.Filter]
	Exit        projection.Exit // how the command of the last one ended
	Detail      string          // by cause: the last line of their details, with … for what differs
	Example     string          // the last line of the last detail that there is
	Attempts    int64
	Jobs        map[int64]bool // their numbers
	First, Last time.Time
	LastPos     int64
	Workers     map[string]int // attempts by the name of the worker
	Versions    map[string]int // attempts by its version
	Each        []Failed       // the attempts, in the order in which they ended
	Steps       []int64        // how many ended in each step of the window

	// With [Failures.Jobs]:
	States     map[event.State]int64 // the states of the jobs; of a window with an At, as they were then
	LastFailed int64                 // jobs that failed for good, and last by one of these attempts
	Ended      int64                 // attempts of the queue, or by code all, that succeeded or ended as asked
}

// FailureGroups are the answer to [Failures].
type FailureGroups struct {
	List     []*FailureGroup // the one with the most attempts first, then by code, then the one that came first
	More     int             // so many groups are left out
	Attempts int64           // of all groups
}

// Read returns the groups, or an [*InputError] for another outcome. It reads the failures of the window, and
// of each job its first event.
func (q Failures) Read(ctx context.Context, tx *ledger.Tx) (all FailureGroups, err error) {
	for _, k := range q.Outcomes {
		if k != event.KindFailed && k != event.KindReclaimed && k != event.KindReleased {
			return all, badInput("outcome", "failures end as failed, reclaimed or released")
		}
	}
	byKey := make(map[[3]string]*FailureGroup)
	last := make(lastFailed)
	err = q.Each(ctx, tx, func(f Failure) {
		key := [3]string{"", f.Code, ""}
		if q.By != ByCode {
			key[0] = f.Queue
		}
		if q.By == ByCause {
			key[2] = fingerprint.Of(f.Code, f.Exit.Code, f.Exit.Signal, f.Detail)
		}
		g := byKey[key]
		if g == nil {
			g = &FailureGroup{Queue: key[0], Code: key[1], ID: key[2], First: f.At, Jobs: make(map[int64]bool),
				Workers: make(map[string]int), Versions: make(map[string]int), Steps: make([]int64, q.Steps)}
			if q.By == ByCause {
				g.Detail = fingerprint.Fold(f.Detail)
			}
			byKey[key] = g
		}
		all.Attempts++
		last[f.N] = ofGroup{f.Pos, g}
		if q.Steps > 0 {
			g.Steps[q.step(f.At)]++
		}
		g.Attempts++
		g.Jobs[f.N] = true
		g.Last, g.LastPos, g.Example, g.Exit = f.At, f.Pos, cmp.Or(f.Detail, g.Example), f.Exit
		g.Each = append(g.Each, f.Failed)
		if f.Worker.Name != "" {
			g.Workers[f.Worker.Name]++
		}
		g.Versions[f.Worker.Version]++
	})
	all.List = slices.SortedFunc(maps.Values(byKey), func(a, b *FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), strings.Compare(a.Code, b.Code),
			cmp.Compare(a.Each[0].Pos, b.Each[0].Pos))
	})
	if q.GivenUp {
		err = cmp.Or(err, q.addJobs(ctx, tx, all.List, last))
		all.List = slices.DeleteFunc(all.List, func(g *FailureGroup) bool { return g.LastFailed == 0 })
	}
	if q.Limit > 0 && len(all.List) > q.Limit {
		all.More = len(all.List) - q.Limit
		all.List = all.List[:q.Limit]
	}
	if err == nil && q.Jobs && !q.GivenUp {
		err = q.addJobs(ctx, tx, all.List, last)
	}
	return all, err
}

// step is the number of the step of the window that has the time.
func (q Failures) step(at time.Time) int {
	length := max(q.To.At.Sub(q.From.At), 1)
	return max(0, min(q.Steps-1, int(float64(q.Steps)*float64(at.Sub(q.From.At))/float64(length))))
}

func (q Failures) outcomes() []event.Kind {
	if len(q.Outcomes) == 0 {
		return failed
	}
	return q.Outcomes
}

// Failure is an attempt that ended badly, and Failed one of a [FailureGroup].
type (
	Failure = attempts.Failure
	Failed  = attempts.Failed
)

// Each calls fn with each failure, in the order in which they happened. By and Limit do not matter.
func (q Failures) Each(ctx context.Context, tx *ledger.Tx, fn func(Failure)) error {
	return q.filter().Each(ctx, tx, fn)
}

func (q Failures) filter() attempts.FailureFilter {
	return attempts.FailureFilter{After: q.From.Pos, Until: q.To.Pos, Queue: q.Queue, Worker: q.Worker,
		Kinds: q.outcomes()}
}
