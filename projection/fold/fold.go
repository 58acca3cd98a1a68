// Package fold derives everything that the tables hold from the events alone: see [Fold].
//
// Held by TestVerifyFindsEveryMutation and TestRebuildRepairsAnyDamage of package projection/audit, and by
// TestDependenciesOfAnyGraph of package commands. This package is not part of the Go API, and may change
// in any release.
package fold

import (
	"context"
	"errors"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/group"
	"jobledger/projection/limit"
	"jobledger/projection/schedules"
)

// Fold derives jobs and queues from the events in the order of pos. Its owner removes ended jobs from Open,
// so it holds open jobs, not all that ever were.
type Fold struct {
	Open      map[int64]*projection.Job
	Queues    map[string]projection.Queue
	Limits    limit.Set
	Schedules schedules.Fold
	Live      map[string]limit.Live   // by queue: jobs that are claimed or running
	Groups    map[string]WaitingGroup // by lane: those with queued jobs
	Jobs      int64                   // enqueued so far
	Deps      *deps.Fold              // what jobs wait for; nil: not derived
	Gaps      schedules.Gaps          // the jobs that have left the ledger
	Wrong     string                  // what the last event says of Deps that is not so; "": nothing
	// Load returns a job that is not in Open, as it is before the event pos.
	Load func(n, pos int64) (projection.Job, error)
}

// New returns the fold of no events.
func New() *Fold {
	return &Fold{Open: make(map[int64]*projection.Job), Queues: make(map[string]projection.Queue),
		Limits: make(limit.Set), Live: make(map[string]limit.Live), Schedules: make(schedules.Fold),
		Groups: make(map[string]WaitingGroup)}
}

// Before returns the job of e as it was before e; nil if e concerns none. The fold owns the job.
func (f *Fold) Before(e *event.Event) (*projection.Job, error) {
	if e.N == 0 {
		return nil, nil
	}
	j, ok := f.Open[e.N]
	if ok {
		return j, nil
	}
	j = new(projection.Job)
	if e.Kind() != event.KindEnqueued && f.Load != nil {
		var err error
		if *j, err = f.Load(e.N, e.Pos); err != nil {
			return nil, err
		}
	}
	f.Open[e.N] = j
	return j, nil
}

// CompleteScanned sets what a scan leaves out: the job id, and the token of the claim that e continues or
// ends.
func CompleteScanned(j *projection.Job, e *event.Event) {
	if j == nil || e.Kind() == event.KindEnqueued {
		return
	}
	e.Job = j.ID
	if e.Token == "" && e.Attempt != 0 && e.Attempt == j.Attempt {
		e.Token = j.Token
	}
}

// Add applies the next event, whose job is j, to j or to its queue.
func (f *Fold) Add(j *projection.Job, e *event.Event) error {
	f.Wrong = ""
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		return f.addQueue(b.Queue, e)
	case *event.QueueResumed:
		return f.addQueue(b.Queue, e)
	case *event.Claimed:
		if j != nil {
			f.Limits.Start(j.Queue, j.Group, e.At)
		}
	case *event.Enqueued:
		if e.N != e.Pos {
			return fmt.Errorf("%w: enqueued at %d names job number %d", projection.ErrIllegal, e.Pos, e.N)
		}
		f.Jobs++
		f.Gaps.Pass(f.Schedules, *e)
		if err := f.Schedules.Add(*e); err != nil {
			return err
		}
	}
	switch {
	case e.Kind().OfJob() && j == nil:
		return fmt.Errorf("%w: %s of no job", projection.ErrIllegal, e.Kind())
	case e.Kind().OfJob():
	case e.N != 0 || e.Seq != 0:
		return fmt.Errorf("%w: %s concerns a job", projection.ErrIllegal, e.Kind())
	default:
		f.Gaps.Pass(f.Schedules, *e)
		return errors.Join(f.Limits.Add(*e), f.Schedules.Add(*e))
	}
	held, lane := j.State.Held(), ""
	if j.Group != "" {
		lane = projection.LaneOf(*j)
	}
	if err := Step(j, e); err != nil {
		return err
	}
	if held != j.State.Held() {
		f.CountLive(j)
	}
	if j.Group != "" {
		f.countQueued(lane, projection.LaneOf(*j), e)
	}
	if f.Deps == nil {
		return nil
	}
	var err error
	f.Wrong, err = f.Deps.Add(e)
	return err
}

// Step applies e to j and checks the states that e names.
func Step(j *projection.Job, e *event.Event) error {
	after, err := projection.Evolve(*j, *e)
	switch {
	case err != nil:
		return err
	case e.Seq != 0 && e.From != j.State:
		return fmt.Errorf("%w: %s says it came from %q, but the job was %q",
			projection.ErrIllegal, e.Kind(), e.From, j.State)
	case e.Seq != 0 && e.To != after.State:
		return fmt.Errorf("%w: %s says it led to %q, but it leads to %q",
			projection.ErrIllegal, e.Kind(), e.To, after.State)
	}
	*j = after
	return nil
}

func (f *Fold) addQueue(name string, e *event.Event) error {
	if e.N != 0 || e.Seq != 0 {
		return fmt.Errorf("%w: %s concerns a job", projection.ErrIllegal, e.Kind())
	}
	q, err := projection.EvolveQueue(f.Queues[name], *e)
	if err == nil {
		f.Queues[name] = q
	}
	return err
}

// JobBefore folds the events of job n before pos; the zero Job if there is none.
func JobBefore(ctx context.Context, tx *ledger.Tx, n, pos int64) (j projection.Job, err error) {
	if pos <= n {
		return j, nil
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Job: n, Until: pos - 1}) {
		if err != nil {
			return j, err
		}
		if err := Step(&j, &e); err != nil {
			return j, fmt.Errorf("event %d: %w", e.Pos, err)
		}
	}
	return j, nil
}

// WaitingGroup is a group with queued jobs in a lane.
type WaitingGroup struct {
	Queued int64
	Served group.Served
}

// CountLive adds the claim of j that has just begun or ended.
func (f *Fold) CountLive(j *projection.Job) {
	if f.Live[j.Queue] == nil {
		f.Live[j.Queue] = make(limit.Live)
	}
	if j.State.Held() {
		f.Live[j.Queue][j.Group]++
	} else {
		f.Live[j.Queue][j.Group]--
	}
}

// countQueued takes in that e brought a job of a group from one lane to another; "": none.
func (f *Fold) countQueued(from, to string, e *event.Event) {
	if from == to {
		return
	}
	if from != "" {
		g := f.Groups[from]
		if g.Queued--; e.Kind() == event.KindClaimed {
			g.Served = group.Served{Pos: e.Pos, At: event.Micros(e.At)}
		}
		if f.Groups[from] = g; g.Queued == 0 {
			delete(f.Groups, from)
		}
	}
	if to != "" {
		g := f.Groups[to]
		g.Queued++
		f.Groups[to] = g
	}
}
