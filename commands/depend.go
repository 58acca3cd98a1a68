package commands

import (
	"context"
	"errors"
	"slices"

	"jobledger/commands/internal/depend"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/past"
)

// The limits of what a job may wait for.
const (
	MaxAfter  = 1000
	MaxBefore = 16
)

// Dependency is a job that is waited for, or that is to wait, and for which end. The zero On is success.
type Dependency struct {
	Job event.JobID
	On  event.Ending
}

// CheckDependencies returns an InvalidError for the first job of After or Before that is not allowed.
func (e *Enqueue) CheckDependencies() error {
	if err := invalid(depend.Check("after", depend.Refs(e.After), MaxAfter)); err != nil {
		return err
	}
	return invalid(depend.Check("before", depend.Refs(e.Before), MaxBefore))
}

// depend reads the jobs that n names, and completes the fact of its enqueuing. broken is the first job that
// has ended in another way than n waits for; "": none has.
func (n newJob) depend(ctx context.Context, tx *ledger.Tx, f *journal.Fact) (broken event.JobID, err error) {
	broken, err = depend.Job{After: depend.Refs(n.After), Before: depend.Refs(n.Before), Hold: n.Hold,
		Find: n.dependency}.Complete(ctx, tx, f)
	if c, ok := errors.AsType[*depend.Conflict](err); ok {
		err = (*ConflictError)(c)
	}
	return broken, err
}

// dependency returns the job that n names by this id.
func (n newJob) dependency(ctx context.Context, tx *ledger.Tx, id event.JobID) (projection.Job, error) {
	if same, ok := n.same[id]; ok {
		id = same
	}
	j, err := jobWith(ctx, tx, id)
	if ended := n.archived[id]; ended != 0 && errors.Is(err, ErrNoJob) {
		return projection.Job{ID: id, State: ended}, nil
	}
	return j, err
}

// archived returns the states in which those of the jobs that n waits for, or that are to wait, ended which
// have left the ledger. They cannot change, so this is read before the transaction that enqueues.
func (s *Service) archived(ctx context.Context, asked []newJob) (ended map[event.JobID]event.State,
	err error) {
	var named []event.JobID
	for _, n := range asked {
		for _, d := range slices.Concat(n.After, n.Before) {
			named = append(named, d.Job)
		}
	}
	if s.Archived == nil || len(named) == 0 {
		return nil, nil
	}
	var gone []event.JobID
	err = s.read(ctx, func(tx *ledger.Tx) error {
		for _, id := range named {
			left, err := past.MayHaveLeft(ctx, tx, id)
			if err == nil && left {
				_, left, err = projection.Get(ctx, tx, id)
				left = !left
			}
			if err != nil {
				return err
			}
			if left {
				gone = append(gone, id)
			}
		}
		return nil
	})
	for _, id := range gone {
		if err != nil {
			break
		}
		var state event.State
		if state, err = s.Archived(ctx, id); errors.Is(err, ErrNoJob) {
			err = nil // so the transaction says
		}
		if state != 0 {
			if ended == nil {
				ended = make(map[event.JobID]event.State)
			}
			ended[id] = state
		}
	}
	return ended, err
}

// resolveStep is a step of journal.ResolveJob before c, if that is a retry of j: where many jobs wait for j,
// no transaction is long. again is true if the next transaction has to look once more.
func resolveStep(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Command) (again bool,
	err error) {
	if _, ok := c.(Retry); !ok {
		return false, nil
	}
	return journal.ResolveJob(ctx, tx, actor, j, journal.ResolvedBySweeper)
}
