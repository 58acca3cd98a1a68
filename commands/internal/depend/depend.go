// Package depend is what a new job waits for, and which jobs are to wait for it: it reads the jobs that are
// named, judges whether that can be, and completes the event of the new one.
//
//	n := depend.Job{After: refs, Find: find}
//	broken, err := n.Complete(ctx, tx, &fact)
package depend

import (
	"cmp"
	"context"
	"fmt"

	"jobledger/commands/internal/check"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/ends"
)

// maxAncestry is how many edges are searched for a cycle.
const maxAncestry = 10_000

// Ref is commands.Dependency.
type Ref struct {
	Job event.JobID
	On  event.Ending
}

// Refs returns list as Refs.
func Refs[D ~struct {
	Job event.JobID
	On  event.Ending
}](list []D) []Ref {
	refs := make([]Ref, len(list))
	for i, d := range list {
		refs[i] = Ref(d)
	}
	return refs
}

func (r Ref) ending() event.Ending { return max(r.On, event.OnSucceeded) }

func (r Ref) text() string { return event.FormatReference(r.Job, r.ending()) }

// Check finds a problem unless list has at most so many jobs, by id, and each once.
func Check(field string, list []Ref, most int) *check.Problem {
	if len(list) > most {
		return &check.Problem{Field: field, Got: fmt.Sprintf("of %d jobs", len(list)),
			Allowed: fmt.Sprintf("up to %d jobs", most)}
	}
	seen := make(map[event.JobID]bool, len(list))
	for _, r := range list {
		if _, _, err := event.ParseReference(r.text()); err != nil || seen[r.Job] {
			return &check.Problem{Field: field, Got: fmt.Sprintf("%.80q", r.text()),
				Allowed: "jobs by id, each once, for succeeded, failed or finished"}
		}
		seen[r.Job] = true
	}
	return nil
}

// Conflict is why a job cannot be waited for, or cannot wait, as commands.ConflictError has it.
type Conflict struct {
	Command string
	Job     event.JobID
	Why     string
}

// Error says what conflicts with what.
func (e *Conflict) Error() string { return fmt.Sprintf("%s job %s: %s", e.Command, e.Job, e.Why) }

func conflict(job event.JobID, why string, args ...any) error {
	return &Conflict{"enqueue", job, fmt.Sprintf(why, args...)}
}

// Job is a new job that may name others.
type Job struct {
	After, Before []Ref
	Hold          bool

	// Find returns the job with an id. One that has left the ledger has no number, and the state in which it
	// ended. Another id than the one asked for may be that of the job.
	Find func(ctx context.Context, tx *ledger.Tx, id event.JobID) (projection.Job, error)
}

// Complete reads the jobs that n names, and completes f, the fact of its enqueuing. broken is the first job
// that has ended in another way than n waits for; "": none has. Errors: a Conflict; those of Find.
func (n Job) Complete(ctx context.Context, tx *ledger.Tx, f *journal.Fact) (broken event.JobID, err error) {
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
func (n Job) waitFor(ctx context.Context, tx *ledger.Tx, f *journal.Fact, body *event.Enqueued) (
	parents []int64, broken event.JobID, err error) {
	named := make(endings)
	for _, r := range n.After {
		j, err := n.Find(ctx, tx, r.Job)
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
func (n Job) precede(ctx context.Context, tx *ledger.Tx, f *journal.Fact, body *event.Enqueued,
	parents []int64) error {
	named := make(endings)
	for _, r := range n.Before {
		j, err := n.Find(ctx, tx, r.Job)
		if err == nil && j.N == 0 {
			err = conflict(j.ID, "it is %s, and archived; only a job that is blocked can wait for another one",
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

// endings are the ends that jobs are waited for. Two ids of a call may turn out to be those of one job.
type endings map[event.JobID]event.Ending

// add adds r, with the id that its job has. known: it is there already.
func (m endings) add(r Ref) (known bool, err error) {
	on, known := m[r.Job]
	if known && on != r.ending() {
		err = conflict(r.Job, "it is named twice, as %s and as %s", on, r.ending())
	}
	m[r.Job] = r.ending()
	return known, err
}

// mayWait returns a Conflict unless j can wait for a new job: j waits already, or was cancelled because of a
// job that it waited for, and none of the parents of the new job waits for j.
func mayWait(ctx context.Context, tx *ledger.Tx, j projection.Job, parents []int64) error {
	edges, err := deps.Of(ctx, tx, j.N, 1)
	if err != nil {
		return err
	}
	if len(edges) == 0 {
		return conflict(j.ID, "%s; only a job that is blocked can wait for another one", check.StateText(j.State))
	}
	before, known, err := deps.WaitsFor(ctx, tx, parents, j.N, maxAncestry)
	switch {
	case err != nil:
		return err
	case before:
		return conflict(j.ID, "the new job would wait for it, and it for the new job")
	case !known:
		return conflict(j.ID, "more than %d dependencies would have to be searched for a cycle", maxAncestry)
	}
	return nil
}
