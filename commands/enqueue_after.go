package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"jobledger/commands/internal/check"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/ends"
	"jobledger/projection/past"
)

// The limits of what a job may wait for.
const (
	MaxAfter  = 1000
	MaxBefore = 16
)

// maxAncestry is how many edges are searched for a cycle.
const maxAncestry = 10_000

// Dependency is a job to wait for, or one that is to wait, with the end that is waited for. The zero On is
// success.
type Dependency struct {
	Job event.JobID
	On  event.Ending
}

func (d Dependency) ending() event.Ending { return max(d.On, event.OnSucceeded) }

func (d Dependency) text() string { return event.FormatReference(d.Job, d.ending()) }

// CheckDependencies returns an InvalidError for the first job of After or Before that is not allowed.
func (e *Enqueue) CheckDependencies() error { return invalid(e.checkDependencies()) }

func (e *Enqueue) checkDependencies() *check.Problem {
	texts := func(list []Dependency) (texts []string) {
		for _, d := range list {
			texts = append(texts, d.text())
		}
		return texts
	}
	return cmp.Or(check.Jobs("after", texts(e.After), MaxAfter),
		check.Jobs("before", texts(e.Before), MaxBefore))
}

func cannotWait(job event.JobID, why string, args ...any) error {
	return &ConflictError{"enqueue", job, fmt.Sprintf(why, args...)}
}

// depend reads the jobs that n names, and completes f, the fact of its enqueuing. broken is the first job
// that has ended in another way than n waits for; "": none has. Errors: a ConflictError; those of dependency.
func (n newJob) depend(ctx context.Context, tx *ledger.Tx, f *journal.Fact) (broken event.JobID, err error) {
	body := f.Body.(*event.Enqueued)
	if body.Hold = n.Hold; n.Hold {
		f.Edges = append(f.Edges, deps.Edge{Child: journal.Self})
	}
	parents, broken, err := n.waitFor(ctx, tx, f, body)
	body.Blocked = body.Blocked || len(f.Edges) > 0
	if until := ends.Latest(f.Delays); !body.Blocked && until.After(body.RunAt) {
		for i := range f.Delays {
			f.Delays[i].RunAt = body.RunAt
		}
		body.RunAt = until
	}
	if err == nil {
		err = n.precede(ctx, tx, f, body, parents)
	}
	if err != nil {
		return "", err
	}
	return broken, nil
}

// waitFor adds the jobs of n.After, and returns their numbers.
func (n newJob) waitFor(ctx context.Context, tx *ledger.Tx, f *journal.Fact, body *event.Enqueued) (
	parents []int64, broken event.JobID, err error) {
	named := make(endings)
	for _, r := range n.After {
		j, err := n.dependency(ctx, tx, r.Job)
		if err != nil {
			return nil, "", err
		}
		r.Job = j.ID
		if known, err := named.add(r); err != nil {
			return nil, "", err
		} else if known {
			continue
		}
		parents = append(parents, j.N)
		body.After = append(body.After, r.text())
		if r.ending().Meets(j.State) {
			until, err := ends.Open(ctx, tx, j, tx.Now())
			if err != nil {
				return nil, "", err
			}
			if !until.IsZero() {
				f.Delays = append(f.Delays, ends.Delay{Parent: j.N, Until: until})
			}
			continue
		}
		if j.N == 0 { // it has left, and cannot be retried: there is nothing to wait for
			body.Blocked = true
			broken = cmp.Or(broken, j.ID)
			continue
		}
		edge := deps.Edge{Parent: j.N, Child: journal.Self, On: r.ending(), Broken: j.State.Final()}
		if f.Edges = append(f.Edges, edge); edge.Broken && broken == "" {
			broken = j.ID
		}
	}
	return parents, broken, nil
}

// precede adds the jobs of n.Before. The new job waits for those with the numbers parents.
func (n newJob) precede(ctx context.Context, tx *ledger.Tx, f *journal.Fact, body *event.Enqueued,
	parents []int64) error {
	named := make(endings)
	for _, r := range n.Before {
		j, err := n.dependency(ctx, tx, r.Job)
		if err == nil && j.N == 0 {
			err = cannotWait(j.ID, "it is %s, and archived; only a job that is blocked can wait for another one",
				j.State)
		}
		if err != nil {
			return err
		}
		r.Job = j.ID
		if known, err := named.add(r); err != nil {
			return err
		} else if known {
			continue
		}
		if err := mayWait(ctx, tx, j, parents); err != nil {
			return err
		}
		body.Before = append(body.Before, r.text())
		f.Edges = append(f.Edges, deps.Edge{Parent: journal.Self, Child: j.N, On: r.ending()})
	}
	return nil
}

// endings are the ends that jobs are waited for. Two ids of a call may turn out to name the same job.
type endings map[event.JobID]event.Ending

// add adds r, with the id of its job. known: the job exists already.
func (m endings) add(r Dependency) (known bool, err error) {
	on, known := m[r.Job]
	if known && on != r.ending() {
		err = cannotWait(r.Job, "it is named twice, as %s and as %s", on, r.ending())
	}
	m[r.Job] = r.ending()
	return known, err
}

// mayWait returns a ConflictError unless j can wait for a new job: j waits already, or was cancelled because
// of a job that it waited for, and none of the parents of the new job waits for j.
func mayWait(ctx context.Context, tx *ledger.Tx, j projection.Job, parents []int64) error {
	edges, err := deps.Of(ctx, tx, j.N, 1)
	if err != nil {
		return err
	}
	if len(edges) == 0 {
		return cannotWait(j.ID, "%s; only a job that is blocked can wait for another one", check.StateText(j.State))
	}
	before, known, err := deps.WaitsFor(ctx, tx, parents, j.N, maxAncestry)
	switch {
	case err != nil:
		return err
	case before:
		return cannotWait(j.ID, "the new job would wait for it, and it for the new job")
	case !known:
		return cannotWait(j.ID, "more than %d dependencies would have to be searched for a cycle", maxAncestry)
	}
	return nil
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

// archived returns the ends of the named jobs that have left the ledger: jobs that a new one waits for, or
// that should wait for it. They cannot change, so this is read before the transaction that enqueues.
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
	gone, err := ledger.Read(ctx, s.Store, func(tx *ledger.Tx) ([]event.JobID, error) {
		return past.Left(ctx, tx, named)
	})
	ended = make(map[event.JobID]event.State)
	for _, id := range gone {
		state, endErr := s.Archived(ctx, id)
		if ended[id] = state; !errors.Is(endErr, ErrNoJob) { // of that the transaction says so
			err = cmp.Or(err, endErr)
		}
	}
	return ended, err
}
