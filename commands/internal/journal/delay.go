package journal

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/ends"
)

// delayBy notes that jobs which wait no more for parent, which has ended, are not to begin before the command
// of its last claim has.
func delayBy(ctx context.Context, tx *ledger.Tx, parent projection.Job, children []int64) error {
	if len(children) == 0 {
		return nil
	}
	until, err := ends.Open(ctx, tx, parent, tx.Now())
	if err != nil || until.IsZero() {
		return err
	}
	for _, child := range children {
		if err := (ends.Delay{Child: child, Parent: parent.N, Until: until}).Add(tx); err != nil {
			return err
		}
	}
	return nil
}

// DelayByMet is delayBy for the jobs with these numbers, which a child waited for.
func DelayByMet(ctx context.Context, tx *ledger.Tx, child int64, parents []int64) error {
	jobs, err := projection.GetMany(ctx, tx, parents)
	if err != nil {
		return err
	}
	for _, n := range parents {
		if err := delayBy(ctx, tx, jobs[n], []int64{child}); err != nil {
			return err
		}
	}
	return nil
}

// delayQueued delays j, which waits for no job any more, until no command of the jobs that it waited for
// runs.
func delayQueued(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job) (projection.Job, error) {
	if some, err := ends.AnyDelays(ctx, tx); err != nil || !some {
		return j, err
	}
	list, err := ends.DelaysOf(ctx, tx, j.N, tx.Now())
	if err != nil || !ends.Latest(list).After(j.RunAt) {
		return j, err
	}
	if err := ends.Queued(tx, j.N, j.RunAt); err != nil {
		return j, err
	}
	id, err := projection.IDOf(ctx, tx, list[0].Parent)
	if err != nil {
		return j, err
	}
	return Record(ctx, tx, Fact{Actor: actor, Job: j, Body: &event.Rescheduled{RunAt: ends.Latest(list),
		Priority: j.Priority, Reason: mayRun(id)}})
}

// AwaitNoMore has nothing wait any more for the command of the last claim of j, as an operator wishes.
func AwaitNoMore(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job) error {
	if err := ends.Stopped(tx, j.N, j.Attempt); err != nil {
		return err
	}
	return liftDelays(ctx, tx, actor, j)
}

// extend has everything that waits for the command of the last claim of j, which lives on, wait for longer.
func extend(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job) error {
	lost, ok, err := projection.LastLostClaim(ctx, tx, j, projection.Now(tx.Now()))
	if err != nil || !ok {
		return err
	}
	until := lost.Until
	if err := ends.Extend(tx, j.N, j.Attempt, until); err != nil {
		return err
	}
	delays, err := ends.DelaysBy(ctx, tx, j.N)
	if err != nil || len(delays) == 0 {
		return err
	}
	children, err := childrenOf(ctx, tx, delays)
	if err != nil {
		return err
	}
	for _, d := range delays {
		others, err := ends.DelaysOf(ctx, tx, d.Child, tx.Now())
		if err != nil {
			return err
		}
		before := ends.Latest(append(others, d))
		d.Until = until
		if err := d.Add(tx); err != nil {
			return err
		}
		child, ok := children[d.Child]
		if !ok || child.State != event.Queued || !child.RunAt.Equal(before) || !until.After(before) {
			continue // it still waits for others, or an operator has said when it is to run
		}
		if _, err := Record(ctx, tx, Fact{Actor: actor, Job: child, Body: &event.Rescheduled{RunAt: until,
			Priority: child.Priority, Reason: mayRun(j.ID)}}); err != nil {
			return err
		}
	}
	return nil
}

func mayRun(id event.JobID) string {
	return fmt.Sprintf("the command of job %s may run until then", id)
}

func childrenOf(ctx context.Context, tx *ledger.Tx, delays []ends.Delay) (map[int64]projection.Job, error) {
	ns := make([]int64, len(delays))
	for i, d := range delays {
		ns[i] = d.Child
	}
	return projection.GetMany(ctx, tx, ns)
}

// liftDelays lets the jobs run that waited only for the command of j, which has ended.
func liftDelays(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job) error {
	lifted, err := ends.Lift(ctx, tx, j.N)
	if err != nil || len(lifted) == 0 {
		return err
	}
	children, err := childrenOf(ctx, tx, lifted)
	if err != nil {
		return err
	}
	for _, d := range lifted {
		child, ok := children[d.Child]
		if !ok || child.State != event.Queued || d.RunAt.IsZero() {
			continue
		}
		others, err := ends.DelaysOf(ctx, tx, d.Child, tx.Now())
		if err != nil {
			return err
		}
		if !child.RunAt.Equal(ends.Latest(append(others, d))) {
			continue // an operator has said when it is to run
		}
		at := tx.Now()
		for _, other := range append(others, ends.Delay{Until: d.RunAt}) {
			if other.Until.After(at) {
				at = other.Until
			}
		}
		if !at.Before(child.RunAt) {
			continue
		}
		if _, err := Record(ctx, tx, Fact{Actor: actor, Job: child, Body: &event.Rescheduled{RunAt: at,
			Priority: child.Priority, Reason: fmt.Sprintf("the command of job %s has ended", j.ID)}}); err != nil {
			return err
		}
	}
	return nil
}
