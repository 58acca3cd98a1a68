package state

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection"
)

// NamedQueue returns the queue of this name; known is false where the ledger has never seen the name.
func NamedQueue(ctx context.Context, store *ledger.Store, name string) (q projection.Queue, known bool,
	err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		n, err := tx.Name(ctx, name)
		if known = n != 0; err != nil {
			return err
		}
		q, err = projection.GetQueue(ctx, tx, name)
		return err
	})
	return q, known, err
}
