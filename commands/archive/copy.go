package archive

import (
	"context"
	"iter"
	"path/filepath"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/prefetch"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// copyAtOnce is how many events one transaction of Copy writes.
const copyAtOnce = 20_000

// OpenCopy makes a Copy in a file in folder, which is empty, and opens it. The copy knows of which ledger it
// is, and which bodies have left that: store must stay open for as long as it is used. Errors: those of
// [ledger.Open] and of Copy.
func OpenCopy(ctx context.Context, store *ledger.Store, dir, folder string, bodies bool) (*ledger.Store,
	error) {
	into, err := ledger.Open(ctx, "sqlite:"+filepath.Join(folder, "whole.db")+"?sync=normal")
	if err != nil {
		return nil, err
	}
	into.Whole, into.Exclusive, into.NoBodies = true, true, !bodies
	into.CopyOf, into.BodyLeft = store.LedgerPath(), bodyLeft(store)
	if err := Copy(ctx, store, dir, into, bodies); err != nil {
		_ = into.Close() // what it holds is incomplete
		return nil, err
	}
	return into, nil
}

// bodyLeft returns what says of a copy of store which bodies have left store with their jobs.
func bodyLeft(store *ledger.Store) func(ctx context.Context, n, pos int64) (bool, error) {
	return func(ctx context.Context, n, pos int64) (left bool, err error) {
		err = store.Read(ctx, func(tx *ledger.Tx) error {
			jobs, err := projection.GetMany(ctx, tx, []int64{n})
			if _, there := jobs[n]; err != nil || there {
				left = false
				return err
			}
			_, _, kept, err := tx.Body(ctx, pos)
			left = !kept
			return err
		})
		return left && err == nil, err
	}
}

// Copy writes every event that there ever was in store, up to the last one now, into an empty ledger, for
// reading: its events and jobs are as if nothing had left store. Without bodies it has no payloads and
// results. into.Whole must be set. It costs the whole history. Errors: those of Lines.
func Copy(ctx context.Context, store *ledger.Store, dir string, into *ledger.Store, bodies bool) error {
	next, stop := iter.Pull2(prefetch.Lines(Lines(ctx, store, dir, ledger.Filter{}, bodies)))
	defer stop()
	loader := audit.NewLoader(nil)
	once := func(fn func(*ledger.Tx) error) error {
		// A function that fails must not run again: the lines have been taken. Its error is the one to report.
		done, first := false, ledger.ErrConflict
		return into.Write(ctx, func(tx *ledger.Tx) error {
			if done {
				return first
			}
			done = true
			err := fn(tx)
			if err != nil {
				first = err
			}
			return err
		})
	}
	err := once(func(tx *ledger.Tx) error { return tx.DropGuards(ctx) })
	for more := true; more && err == nil; {
		err = once(func(tx *ledger.Tx) error {
			loader.Continue(tx)
			for range copyAtOnce {
				var line event.Line
				var err error
				if line, err, more = next(); !more {
					return loader.End(ctx)
				}
				if err == nil {
					err = loader.Add(ctx, line)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return err
	}
	return once(func(tx *ledger.Tx) error {
		_, err := tx.RepairSchema(ctx)
		return err
	})
}
