package projection

import (
	"fmt"

	"jobledger/ledger"
)

// fold derives the projection from the events in the order of pos. Jobs that have ended leave the memory as soon as
// their owner says so, so it holds what is open, not what ever was.
type fold struct {
	open   map[int64]Job
	queues map[string]Queue
	jobs   int64
	// done is told each job that has just reached a final state, and says whether fold may forget it: then no
	// later event of that job will come, or load brings it back.
	done func(Job) (forget bool, err error)
	// load returns a job that was forgotten.
	load func(n int64) (Job, error)
}

func newFold() *fold { return &fold{open: make(map[int64]Job), queues: make(map[string]Queue)} }

// add takes the next event and returns the job that it made, if it concerns one.
func (f *fold) add(e ledger.Event) (Job, error) {
	switch b := e.Body.(type) {
	case *ledger.QueuePaused:
		return Job{}, f.addQueue(b.Queue, e)
	case *ledger.QueueResumed:
		return Job{}, f.addQueue(b.Queue, e)
	case *ledger.WorkerStarted, *ledger.WorkerStopped, *ledger.Rebuilt, *ledger.Restored, *ledger.Imported:
		if e.N != 0 || e.Seq != 0 {
			return Job{}, fmt.Errorf("%w: %s concerns a job", ErrIllegal, e.Kind())
		}
		return Job{}, nil
	}
	before, known := f.open[e.N]
	if !known && e.Kind() != ledger.KindEnqueued && f.load != nil {
		var err error
		if before, err = f.load(e.N); err != nil {
			return Job{}, err
		}
	}
	if e.Kind() == ledger.KindEnqueued {
		if e.N != e.Pos {
			return Job{}, fmt.Errorf("%w: enqueued at %d names job number %d", ErrIllegal, e.Pos, e.N)
		}
		f.jobs++
	}
	after, err := Evolve(before, e)
	if err != nil {
		return before, err
	}
	if e.From != before.State && e.Seq != 0 {
		return before, fmt.Errorf("%w: %s says it came from %q, but the job was %q", ErrIllegal, e.Kind(), e.From, before.State)
	}
	if e.To != after.State && e.Seq != 0 {
		return before, fmt.Errorf("%w: %s says it led to %q, but it leads to %q", ErrIllegal, e.Kind(), e.To, after.State)
	}
	f.open[e.N] = after
	if after.State.Final() && f.done != nil {
		forget, err := f.done(after)
		if err != nil {
			return after, err
		}
		if forget {
			delete(f.open, e.N)
		}
	}
	return after, nil
}

func (f *fold) addQueue(name string, e ledger.Event) error {
	q, err := EvolveQueue(f.queues[name], e)
	if err == nil {
		f.queues[name] = q
	}
	return err
}
