package find

import (
	"context"
	"errors"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/past"
)

// Left returns a [projection.ArchivedError] if a job with this key, in one of the queues or in any, or
// with one of these ids, or that begins so, has left the ledger: then the archive is to be asked too.
func Left(ctx context.Context, store *ledger.Store, dir string, queues, keys, ids []string) error {
	if len(keys)+len(ids) == 0 {
		return nil
	}
	var horizon int64
	found := false
	err := store.Read(ctx, func(tx *ledger.Tx) (err error) {
		if horizon, err = projection.Horizon(ctx, tx); err != nil || horizon == 0 {
			return err
		}
		for _, key := range keys {
			has, err := past.FindKey(ctx, tx, queues, key)
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
		found = !errors.Is(err, commands.ErrNoJob) // also where a file is missing: the copy says which
	}
	if found {
		return &projection.ArchivedError{Pos: 1, Horizon: horizon}
	}
	return nil
}
