package journal

import (
	"context"
	"fmt"
	"math"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
)

// ResolvedAtOnce is how many edges a transaction resolves that ends a job. A variable for the tests only.
var ResolvedAtOnce = 256

// ResolvedBySweeper is how many edges one transaction of a sweeper resolves.
const ResolvedBySweeper = 1000

// Self is the number of a new job in its edges, before it has one.
const Self = -1

// wave is what one event means for other jobs: the jobs whose children have to learn of their state.
type wave struct {
	tasks []task
	left  int // how many more edges this transaction resolves
}

type task struct {
	deps.Resolving
	parent projection.Job
}

// follow carries out what the event e of f means for what jobs wait for; after is the job after it.
func follow(ctx context.Context, tx *ledger.Tx, f Fact, e event.Event, after projection.Job) error {
	retried, again := e.Body.(*event.Retried)
	unblocked, lifted := e.Body.(*event.Unblocked)
	ended := e.To.Final() && e.Seq != 0
	switch {
	case len(f.Edges) > 0:
		return addEdges(tx, f.Edges, e.N)
	case lifted && unblocked.Hold:
		return deps.Lift(tx, e.N)
	case !ended && !again && e.Kind() != event.KindErased:
		return nil
	}
	if waits, err := tx.HasDependencies(ctx); err != nil || !waits {
		return err
	}
	if dropsWaiting(f.Job, e) {
		if err := deps.Drop(tx, e.N); err != nil {
			return err
		}
	}
	if e.Kind() == event.KindErased || again && !retried.Heals() {
		return nil
	}
	t := task{Resolving: deps.Resolving{Parent: e.N, Heal: again}, parent: after}
	if f.wave != nil {
		f.wave.tasks = append(f.wave.tasks, t)
		return nil
	}
	return (&wave{tasks: []task{t}, left: ResolvedAtOnce}).resolve(ctx, tx, f.Actor)
}

// dropsWaiting reports whether a job that is as j before e waits for nothing any more after it.
func dropsWaiting(j projection.Job, e event.Event) bool {
	switch b := e.Body.(type) {
	case *event.Cancelled:
		return j.State == event.Blocked && b.Because == ""
	case *event.Retried:
		return j.State == event.CancelledState && b.Because == ""
	case *event.Erased:
		return j.State == event.CancelledState
	}
	return false
}

func addEdges(tx *ledger.Tx, edges []deps.Edge, n int64) error {
	for _, edge := range edges {
		if edge.Parent == Self {
			edge.Parent = n
		}
		if edge.Child == Self {
			edge.Child = n
		}
		if err := deps.Add(tx, edge); err != nil {
			return err
		}
	}
	return nil
}

// ResolveJob resolves up to so many edges of what is left of j, which has ended and is about to run once
// more.
func ResolveJob(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, most int) (changed bool,
	err error) {
	waits, err := tx.HasDependencies(ctx)
	if err != nil || !waits || !j.State.Final() {
		return false, err
	}
	s, err := deps.PendingOf(ctx, tx, j.N)
	if err != nil || s.Parent == 0 {
		return false, err
	}
	return true, (&wave{tasks: []task{{s, j}}, left: most}).resolve(ctx, tx, actor)
}

// resolveBeforeRetry prepares the jobs among waiting, for parent, that were cancelled for a retry: it is
// ResolveJob of all their edges, and they learn that something else that they wait for is out of reach.
func resolveBeforeRetry(ctx context.Context, tx *ledger.Tx, actor string, parent int64,
	waiting []deps.Waiting) (
	changed bool, err error) {
	found, err := deps.Pending(ctx, tx, 0)
	if err != nil || len(found) == 0 {
		return false, err
	}
	pending := make(map[int64]bool, len(found))
	for _, s := range found {
		pending[s.Parent] = true
	}
	var ns []int64
	for _, w := range waiting {
		if w.State != event.CancelledState {
			continue
		}
		late, err := deps.LateOf(ctx, tx, w.Child)
		if err != nil {
			return false, err
		}
		marked, err := late.MarkBroken(tx, parent)
		if err != nil {
			return false, err
		}
		changed = changed || marked
		if pending[w.Child] {
			ns = append(ns, w.Child)
		}
	}
	jobs, err := projection.GetMany(ctx, tx, ns)
	if err != nil {
		return false, err
	}
	for _, n := range ns {
		one, err := ResolveJob(ctx, tx, actor, jobs[n], math.MaxInt32)
		if err != nil {
			return false, err
		}
		changed = changed || one
	}
	return changed, nil
}

// ResolveNext carries on with a job that has more waiting for it than was resolved at once, up to so many of
// them.
func ResolveNext(ctx context.Context, tx *ledger.Tx, actor string, most int) error {
	if waits, err := tx.HasDependencies(ctx); err != nil || !waits {
		return err
	}
	found, err := deps.Pending(ctx, tx, 1)
	if err != nil || len(found) == 0 {
		return err
	}
	parents, err := projection.GetMany(ctx, tx, []int64{found[0].Parent})
	if err != nil {
		return err
	}
	parent, ok := parents[found[0].Parent]
	if !ok {
		return fmt.Errorf("%w: job %d is to be resolved, and has no row", ledger.ErrDamaged, found[0].Parent)
	}
	return (&wave{tasks: []task{{found[0], parent}}, left: most}).resolve(ctx, tx, actor)
}

// resolve carries out the tasks of w and those that follow from them. What is more than w.left edges is left
// to a sweeper.
func (w *wave) resolve(ctx context.Context, tx *ledger.Tx, actor string) error {
	for len(w.tasks) > 0 {
		t := w.tasks[0]
		w.tasks = w.tasks[1:]
		if t.Child == 0 {
			earlier, err := deps.PendingOf(ctx, tx, t.Parent)
			if err != nil {
				return err
			}
			t.Heal = t.Heal || earlier.Heal
		}
		waiting, err := t.Next(ctx, tx, w.left+1)
		if err == nil && t.Heal {
			var changed bool
			if changed, err = resolveBeforeRetry(ctx, tx, actor, t.Parent, waiting); changed {
				waiting, err = t.Next(ctx, tx, w.left+1)
			}
		}
		if err != nil {
			return err
		}
		if len(waiting) > w.left {
			waiting = waiting[:w.left]
			if w.left > 0 {
				t.Child = waiting[w.left-1].Child
			}
			err = t.Postpone(tx)
		} else {
			err = deps.Resolved(tx, t.Parent)
		}
		w.left -= len(waiting)
		if err == nil {
			err = w.change(ctx, tx, actor, t.parent, waiting)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// change carries out the consequences of the state of parent for some of the jobs that wait for it.
func (w *wave) change(ctx context.Context, tx *ledger.Tx, actor string, parent projection.Job,
	waiting []deps.Waiting) error {
	c := deps.Decide(parent.State, waiting)
	err := delayBy(ctx, tx, parent, c.Remove)
	if err == nil {
		err = deps.Remove(tx, parent.N, c.Remove)
	}
	if err == nil {
		err = deps.Mark(tx, parent.N, true, c.Break)
	}
	if err == nil {
		err = deps.Mark(tx, parent.N, false, c.Open)
	}
	if err != nil || len(c.Steps) == 0 {
		return err
	}
	var ns []int64
	for _, s := range c.Steps {
		ns = append(ns, s.Child)
	}
	children, err := projection.GetMany(ctx, tx, ns)
	if err != nil {
		return err
	}
	for _, s := range c.Steps {
		j := children[s.Child]
		for _, step := range []struct {
			due  bool
			body event.Body
		}{
			{s.Cancel, &event.Cancelled{Because: parent.ID}},
			{s.Retry, &event.Retried{Because: parent.ID}},
			{s.Queue, &event.Unblocked{Because: parent.ID}},
		} {
			if !step.due {
				continue
			}
			if _, again := step.body.(*event.Retried); again {
				holder, taken, err := projection.KeyHolder(ctx, tx, j)
				if err == nil && taken {
					err = w.refuseRetry(ctx, tx, actor, parent, j, holder)
				}
				if err != nil {
					return err
				}
				if taken {
					break
				}
			}
			if j, err = Record(ctx, tx, Fact{Actor: actor, Job: j, Body: step.body, wave: w}); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuseRetry records that j would run again because of parent, but that holder has its key by now: it is
// cancelled again, and waits for nothing any more.
func (w *wave) refuseRetry(ctx context.Context, tx *ledger.Tx, actor string, parent, j,
	holder projection.Job) error {
	j, err := Record(ctx, tx, Fact{Actor: actor, Job: j, wave: w,
		Body: &event.Retried{Because: parent.ID, KeyTaken: true}})
	if err != nil {
		return err
	}
	_, err = Record(ctx, tx, Fact{Actor: actor, Job: j, wave: w, Body: &event.Cancelled{
		Reason: fmt.Sprintf("its key %q is that of job %s by now", j.Key, holder.ID)}})
	return err
}
