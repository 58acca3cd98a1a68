package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
	"jobledger/projection/verdict"
)

// Problems asks what is wrong at a moment, by the rules of package verdict.
type Problems struct {
	At   projection.Moment
	Most int64 // of the events of the day before it reads so many, the newest; 0: none

	Recent  *verdict.Recent // what happened, where it is known; nil: it is read
	Queues  []status.Queue  // nil: these are read, with the workers, as status.Both does
	Workers []status.Worker
}

// Read returns the problems, the most urgent first, with their causes.
func (q Problems) Read(ctx context.Context, tx *ledger.Tx) (found []verdict.Problem, err error) {
	if q.Queues == nil {
		if q.Queues, q.Workers, err = (status.Both{At: q.At}).Read(ctx, tx); err != nil {
			return nil, err
		}
	}
	if q.Recent == nil && q.Most > 0 {
		if q.Recent, err = verdict.ReadRecent(ctx, tx, q.At, q.Most); err != nil {
			return nil, err
		}
	}
	f := verdict.Facts{At: q.At.At, Queues: q.Queues, Workers: q.Workers, Recent: q.Recent}
	if f.Waited() {
		if f.Limited, err = status.Limits(ctx, tx, q.At); err != nil {
			return nil, err
		}
	}
	for _, name := range f.Crowded() {
		first, err := status.FirstWithRoom(ctx, tx, q.At, name)
		if err != nil {
			return nil, err
		}
		if f.Claimable == nil {
			f.Claimable = make(map[string]time.Time)
		}
		f.Claimable[name] = first
	}
	if err = f.ReadRest(ctx, tx, q.At); err != nil {
		return nil, err
	}
	found = f.Judge()
	for i := range found {
		if p := &found[i]; p.Level > verdict.Note {
			if err := q.addCause(ctx, tx, p); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// addCause sets the commonest failure of p.
func (q Problems) addCause(ctx context.Context, tx *ledger.Tx, p *verdict.Problem) (err error) {
	of := Failures{By: ByCause}
	switch p.Code {
	case verdict.Failing, verdict.Version, verdict.GaveUp:
	case verdict.Lost:
		of.Outcomes = []event.Kind{event.KindReclaimed}
	default:
		return nil
	}
	of.Queue = p.Queue
	of.To = q.At
	if of.From.Pos, err = tx.PosAt(ctx, p.Since.Add(-1)); err != nil {
		return err
	}
	groups, err := of.Read(ctx, tx)
	if err != nil || len(groups.List) == 0 {
		return err
	}
	g := groups.List[0]
	p.Cause = &verdict.Cause{Code: g.Code, Exit: g.Exit.Code, Detail: cmp.Or(g.Example, g.Detail),
		Attempts: g.Attempts, Jobs: int64(len(g.Jobs)), Workers: slices.Sorted(maps.Keys(g.Workers))}
	return nil
}
