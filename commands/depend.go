package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/past"
)

// The limits of what a job may wait for.
const (
	MaxAfter    = 1000
	MaxBefore   = 16
	maxAncestry = 10_000 // edges that are searched for a cycle
)

// Dependency is a job that is waited for, or that is to wait, and for which end. The zero On is success.
type Dependency struct {
	Job event.JobID
	On  event.Ending
}

func (d Dependency) ending() event.Ending { return max(d.On, event.OnSucceeded) }

func (d Dependency) text() string { return event.FormatReference(d.Job, d.ending()) }

// CheckDependencies returns an InvalidError for the first job of After or Before that is not allowed.
func (e *Enqueue) CheckDependencies() error {
	if err := checkDependencies("after", e.After, MaxAfter); err != nil {
		return err
	}
	return checkDependencies("before", e.Before, MaxBefore)
}

func checkDependencies(field string, list []Dependency, most int) error {
	if len(list) > most {
		return &InvalidError{field, fmt.Sprintf("of %d jobs", len(list)), fmt.Sprintf("up to %d jobs", most)}
	}
	seen := make(map[event.JobID]bool, len(list))
	for _, d := range list {
		if _, _, err := event.ParseReference(d.text()); err != nil || seen[d.Job] {
			return &InvalidError{field, fmt.Sprintf("%.80q", d.text()),
				"jobs by id, each once, for succeeded, failed or finished"}
		}
		seen[d.Job] = true
	}
	return nil
}

// depend reads the jobs that n names, and completes the fact of its enqueuing. broken is the first job that
// has ended in another way than n waits for; "": none has.
func (n newJob) depend(ctx context.Context, tx *ledger.Tx, f *journal.Fact) (broken event.JobID, err error) {
	body := f.Body.(*event.Enqueued)
	if body.Hold = n.Hold; n.Hold {
		f.Edges = append(f.Edges, deps.Edge{Child: journal.Self})
	}
	var parents []int64
	after, before := make(endings), make(endings)
	for _, d := range n.After {
		j, err := n.dependency(ctx, tx, &d)
		if ended := n.archived[d.Job]; ended != 0 && errors.Is(err, ErrNoJob) {
			j, err = projection.Job{ID: d.Job, State: ended}, nil
		}
		if err != nil {
			return "", err
		}
		if known, err := after.add(n, d); err != nil {
			return "", err
		} else if known {
			continue
		}
		parents = append(parents, j.N)
		body.After = append(body.After, d.text())
		if d.ending().Meets(j.State) {
			continue
		}
		if j.N == 0 { // it has left, and cannot be retried: there is nothing to wait for
			body.Blocked = true
			broken = cmp.Or(broken, j.ID)
			continue
		}
		edge := deps.Edge{Parent: j.N, Child: journal.Self, On: d.ending(), Broken: j.State.Final()}
		if f.Edges = append(f.Edges, edge); edge.Broken && broken == "" {
			broken = j.ID
		}
	}
	body.Blocked = body.Blocked || len(f.Edges) > 0
	for _, d := range n.Before {
		j, err := n.dependency(ctx, tx, &d)
		if ended := n.archived[d.Job]; ended != 0 && errors.Is(err, ErrNoJob) {
			err = &ConflictError{n.name(), d.Job, fmt.Sprintf("it is %s, and archived; only a job that is blocked "+
				"can wait for another one", ended)}
		}
		if err != nil {
			return "", err
		}
		if known, err := before.add(n, d); err != nil {
			return "", err
		} else if known {
			continue
		}
		if err := n.mayPrecede(ctx, tx, j, parents); err != nil {
			return "", err
		}
		body.Before = append(body.Before, d.text())
		f.Edges = append(f.Edges, deps.Edge{Parent: journal.Self, Child: j.N, On: d.ending()})
	}
	return broken, nil
}

// endings are the ends that jobs are waited for. Two ids of a call may turn out to be those of one job.
type endings map[event.JobID]event.Ending

// add adds d, whose job was read. known: it is there already.
func (m endings) add(n newJob, d Dependency) (known bool, err error) {
	on, known := m[d.Job]
	if known && on != d.ending() {
		err = &ConflictError{n.name(), d.Job, fmt.Sprintf("it is named twice, as %s and as %s", on, d.ending())}
	}
	m[d.Job] = d.ending()
	return known, err
}

// dependency returns the job of d, and sets its id to that of the job.
func (n newJob) dependency(ctx context.Context, tx *ledger.Tx, d *Dependency) (projection.Job, error) {
	if id, ok := n.same[d.Job]; ok {
		d.Job = id
	}
	j, ok, err := projection.Get(ctx, tx, d.Job)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %s", ErrNoJob, d.Job)
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
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
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

// mayPrecede returns an error unless j can wait for n: j waits already, or was cancelled because of a job
// that it waited for, and none of the parents of n waits for j.
func (n newJob) mayPrecede(ctx context.Context, tx *ledger.Tx, j projection.Job, parents []int64) error {
	edges, err := deps.Of(ctx, tx, j.N, 1)
	if err != nil {
		return err
	}
	if len(edges) == 0 {
		c := conflict(n, j).(*ConflictError)
		c.Why += "; only a job that is blocked can wait for another one"
		return c
	}
	before, known, err := deps.WaitsFor(ctx, tx, parents, j.N, maxAncestry)
	switch {
	case err != nil:
		return err
	case before:
		return &ConflictError{n.name(), j.ID, "the new job would wait for it, and it for the new job"}
	case !known:
		return &ConflictError{n.name(), j.ID,
			fmt.Sprintf("more than %d dependencies would have to be searched for a cycle", maxAncestry)}
	}
	return nil
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
