package find

import (
	"context"
	"errors"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/past"
	"jobledger/projection/query"
)

// Left returns a [projection.ArchivedError] if q has to be asked of the archive, which is in the folder dir,
// too: if it is as of a moment since which jobs have left the ledger that it may select, or a job with one of
// these keys, in one of the queues of q, or with one of these ids, or that begins so, has left.
func Left(ctx context.Context, store *ledger.Store, dir string, q query.Jobs, keys, ids []string) error {
	if len(keys)+len(ids) == 0 && q.At == nil {
		return nil
	}
	var horizon int64
	found := false
	err := store.Read(ctx, func(tx *ledger.Tx) (err error) {
		if horizon, err = projection.Horizon(ctx, tx); err != nil || horizon == 0 {
			return err
		}
		if q.At != nil && dir != "" {
			absent, err := projection.AbsentFrom(ctx, tx, q.Filter)
			if err != nil {
				return err
			}
			last, err := tx.LastOf(ctx, event.KindRemoved)
			if found = absent.Jobs > 0 && last > q.At.Pos; err != nil {
				return err
			}
		}
		for _, key := range keys {
			has, err := past.FindKey(ctx, tx, q.Filter.Queues, key)
			if err != nil {
				return err
			}
			found = found || len(has) > 0
		}
		return nil
	})
	if err != nil || horizon == 0 {
		return err
	}
	for _, id := range ids {
		if found || dir == "" {
			break
		}
		_, _, err := archive.History(ctx, store, dir, id)
		found = !errors.Is(err, commands.ErrNoJob) // even if a file is missing: the copy says which
	}
	if found {
		return &projection.ArchivedError{Pos: 1, Horizon: horizon}
	}
	return nil
}
