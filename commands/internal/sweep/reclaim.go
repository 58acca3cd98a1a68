package sweep

import (
	"context"
	"errors"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/projection"
)

// reclaimOrIsolate reclaims the batch in one transaction. If what the ledger holds makes that fail, each job
// is reclaimed in a transaction of its own, and the errors go into bad.
func (w *Sweeper) reclaimOrIsolate(ctx context.Context, o *Options, batch []projection.Lease,
	bad map[int64]error) (reclaimed []projection.Job, err error) {
	reclaimed, err = w.reclaim(ctx, o, batch)
	if err == nil || errors.Is(err, errLockLate) || o.StoreFailed(err) {
		return reclaimed, err
	}
	for i, l := range batch {
		one, err := w.reclaim(ctx, o, batch[i:i+1])
		switch {
		case errors.Is(err, errLockLate) || o.StoreFailed(err):
			return reclaimed, err
		case err != nil:
			bad[l.N] = fmt.Errorf("sweep: job %s: %w", l.ID, err)
		}
		reclaimed = append(reclaimed, one...)
	}
	return reclaimed, nil
}

// reclaim reclaims a batch in one transaction.
func (w *Sweeper) reclaim(ctx context.Context, o *Options, batch []projection.Lease) (
	reclaimed []projection.Job, err error) {
	err = o.Store.Write(ctx, func(tx *ledger.Tx) error {
		reclaimed = nil
		if tx.Waited() > maxLockWait {
			return errLockLate
		}
		for _, l := range batch {
			after, done, err := o.Reclaim(ctx, tx, l)
			if err != nil {
				return err
			}
			if !done {
				continue // a heartbeat or an ending came first
			}
			reclaimed = append(reclaimed, after)
			failpoint.Hit("reclaimed")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, j := range reclaimed {
		delete(w.seen, j.N)
	}
	return reclaimed, nil
}
