package journal

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/past"
)

// Remove deletes jobs with all their events, which are archived, and records that. They are the jobs of ns
// that the rules allow to leave, as this transaction sees them. It returns their ids and what it recorded;
// without Jobs it did nothing.
func Remove(ctx context.Context, tx *ledger.Tx, actor string, r past.Rules, ns []int64, more bool,
	reason string) (ids []event.JobID, done event.Removed, err error) {
	if ns, err = past.Removable(ctx, tx, r, ns); err != nil || len(ns) == 0 {
		return nil, done, err
	}
	jobs, err := projection.GetMany(ctx, tx, ns)
	if err != nil {
		return nil, done, err
	}
	var departed projection.Departed
	for _, n := range ns {
		ids = append(ids, jobs[n].ID)
		departed.AddJobs(jobs[n].Queue, jobs[n].State, 1)
	}
	keys, err := past.KeepKeys(ctx, tx, jobs, ns)
	if err != nil {
		return nil, done, err
	}
	var id string // while the ledger has its first event, of which it is
	_, before, err := tx.EventAt(ctx, 1)
	if err == nil && before {
		id, err = projection.LedgerID(ctx, tx)
	}
	if err != nil {
		return nil, done, err
	}
	gone, err := tx.RemoveJobs(ctx, ns, r.KeepBodies)
	if err == nil {
		err = past.RemoveRows(tx, ns)
	}
	if err != nil {
		return nil, done, err
	}
	horizon, err := projection.Horizon(ctx, tx)
	if err != nil {
		return nil, done, err
	}
	done = event.Removed{Hi: max(r.Hi, horizon), Jobs: int64(len(ns)), Events: gone.Events, Bodies: gone.Bodies,
		BodyBytes: gone.BodyBytes, Kept: gone.Kept, Keys: keys, More: more, Reason: reason,
		Left: departed.Left()}
	if err := projection.Depart(ctx, tx, departed); err != nil {
		return nil, done, err
	}
	if _, after, err := tx.EventAt(ctx, 1); err != nil {
		return nil, done, err
	} else if !after {
		done.Ledger = id
	}
	if _, err = Record(ctx, tx, Fact{Actor: actor, Body: &done}); err == nil {
		err = past.RemoveKeyframes(tx)
	}
	return ids, done, err
}
