package files

import (
	"context"
	"errors"
	"os"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/tree"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/status"
)

// migrate brings the ledger to be replaced up to date, as any command does, so that it can be compared.
func (r *restore) migrate(ctx context.Context) error {
	var facts ledger.FileFacts
	err := ledger.InspectFile(ctx, r.done.Path, func(_ *ledger.Tx, f ledger.FileFacts) error {
		facts = f
		return nil
	})
	if err != nil || facts.Schema == facts.Newest {
		return nil // precheck reports the error
	}
	store, err := ledger.OpenExisting(ctx, r.done.Path)
	if err != nil {
		return err
	}
	return store.Close()
}

// openFunc is ledger.InspectFile, or LookAlone.
type openFunc func(context.Context, string, func(*ledger.Tx, ledger.FileFacts) error) error

// precheck refuses to replace a ledger that is in use, or that holds events which the backup does not. With
// Force it refuses only a file that is not a ledger, and a ledger that is open.
func (r *restore) precheck(ctx context.Context, open openFunc) error {
	var busy []status.Worker
	var lost audit.Lost
	err := open(ctx, r.done.Path, func(old *ledger.Tx, _ ledger.FileFacts) error {
		return r.copy.Store.Read(ctx, func(fresh *ledger.Tx) error {
			common, err := audit.CommonPrefix(ctx, old, fresh)
			if err == nil {
				lost, err = audit.LostAfter(ctx, old, common)
			}
			if err == nil {
				busy, err = atWork(ctx, old, r.Now())
			}
			if err == nil {
				r.head = headOf(ctx, old)
			}
			return err
		})
	})
	r.done.Lost, r.done.Compared = lost, err == nil
	switch {
	case errors.Is(err, ledger.ErrNotALedger), errors.Is(err, ledger.ErrNewerSchema),
		errors.Is(err, ledger.ErrNoLedger):
		return refuse(ErrForeign, "%w", err)
	case errors.Is(err, ledger.ErrBusy):
		return inUse(r.done.Path)
	case ctx.Err() != nil:
		return err
	case err != nil:
		r.unreadable = err
	}
	switch {
	case r.Force:
		return nil
	case r.unreadable != nil:
		return refuse(ErrUnreadable, "it is unknown what would be lost: %w", r.unreadable)
	case len(busy) > 0:
		return &AtWorkError{busy}
	case lost.Events > 0:
		return &LossError{lost}
	}
	return nil
}

// head is the end of a ledger: how many events it has, and the root of the hash tree over them.
type head struct {
	size int64
	root string
}

// headOf returns the head of the ledger to be replaced, if its events are sealed; the zero head also where it
// is damaged.
func headOf(ctx context.Context, tx *ledger.Tx) head {
	sealing, err := projection.SealingOf(ctx, tx)
	if err != nil || !sealing.On {
		return head{}
	}
	t, err := tree.New(ctx, tx, nil)
	if err != nil {
		return head{}
	}
	root, err := t.Root(ctx, t.Size())
	if err != nil {
		return head{}
	}
	return head{t.Size(), root.String()}
}

// atWork returns the workers that seem to be alive. The lock finds those of 'jobledger work', which keep the
// ledger open. It cannot find a script between two commands, or a process on a file system that does not show
// locks.
func atWork(ctx context.Context, tx *ledger.Tx, now time.Time) ([]status.Worker, error) {
	workers, err := status.Workers{At: projection.Now(now)}.Read(ctx, tx)
	var busy []status.Worker
	for _, w := range workers {
		if w.State == status.Working || w.State == status.Idle {
			busy = append(busy, w)
		}
	}
	return busy, err
}

// inUse returns an InUseError with the other processes that have the ledger at path open.
func inUse(path string) error {
	e := &InUseError{Path: path}
	for _, h := range ledger.LockHolders(path) {
		if h.PID != os.Getpid() {
			e.Holders = append(e.Holders, h)
		}
	}
	return e
}
