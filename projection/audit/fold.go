package audit

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// fold derives jobs and queues from the events in the order of pos. Its owner removes ended jobs from open,
// so it holds open jobs, not all that ever were.
type fold struct {
	open   map[int64]*projection.Job
	queues map[string]projection.Queue
	jobs   int64 // enqueued so far
	// load returns a job that is not in open, as it is before the event pos.
	load func(n, pos int64) (projection.Job, error)
}

func newFold() *fold {
	return &fold{open: make(map[int64]*projection.Job), queues: make(map[string]projection.Queue)}
}

// before returns the job of e as it was before e; nil if e concerns none. The fold owns the job.
func (f *fold) before(e *event.Event) (*projection.Job, error) {
	if e.N == 0 {
		return nil, nil
	}
	j, ok := f.open[e.N]
	if ok {
		return j, nil
	}
	j = new(projection.Job)
	if e.Kind() != event.KindEnqueued && f.load != nil {
		var err error
		if *j, err = f.load(e.N, e.Pos); err != nil {
			return nil, err
		}
	}
	f.open[e.N] = j
	return j, nil
}

// completeScanned sets what a scan leaves out: the job id, and the token of the claim that e continues or
// ends.
func completeScanned(j *projection.Job, e *event.Event) {
	if j == nil || e.Kind() == event.KindEnqueued {
		return
	}
	e.Job = j.ID
	if e.Token == "" && e.Attempt != 0 && e.Attempt == j.Attempt {
		e.Token = j.Token
	}
}

// add applies the next event, whose job is j, to j or to its queue.
func (f *fold) add(j *projection.Job, e *event.Event) error {
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		return f.addQueue(b.Queue, e)
	case *event.QueueResumed:
		return f.addQueue(b.Queue, e)
	case *event.WorkerStarted, *event.WorkerStopped, *event.Rebuilt, *event.Restored, *event.Imported:
		if e.N != 0 || e.Seq != 0 {
			return fmt.Errorf("%w: %s concerns a job", projection.ErrIllegal, e.Kind())
		}
		return nil
	case *event.Enqueued:
		if e.N != e.Pos {
			return fmt.Errorf("%w: enqueued at %d names job number %d", projection.ErrIllegal, e.Pos, e.N)
		}
		f.jobs++
	}
	if j == nil {
		return fmt.Errorf("%w: %s of no job", projection.ErrIllegal, e.Kind())
	}
	return step(j, e)
}

// step applies e to j and checks the states that e names.
func step(j *projection.Job, e *event.Event) error {
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

func (f *fold) addQueue(name string, e *event.Event) error {
	if e.N != 0 || e.Seq != 0 {
		return fmt.Errorf("%w: %s concerns a job", projection.ErrIllegal, e.Kind())
	}
	q, err := projection.EvolveQueue(f.queues[name], *e)
	if err == nil {
		f.queues[name] = q
	}
	return err
}

// jobBefore folds the events of job n before pos; the zero Job if there is none.
func jobBefore(ctx context.Context, tx *ledger.Tx, n, pos int64) (j projection.Job, err error) {
	if pos <= n {
		return j, nil
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Job: n, Until: pos - 1}) {
		if err != nil {
			return j, err
		}
		if err := step(&j, &e); err != nil {
			return j, fmt.Errorf("event %d: %w", e.Pos, err)
		}
	}
	return j, nil
}
