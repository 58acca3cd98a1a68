package archive

import (
	"context"
	"iter"
	"path/filepath"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/prefetch"
	"jobledger/projection/audit"
)

// copyAtOnce is how many events one transaction of Copy writes.
const copyAtOnce = 20_000

// OpenCopy makes a Copy in a file in folder, which is empty, and opens it. Errors: those of [ledger.Open] and
// of Copy.
func OpenCopy(ctx context.Context, store *ledger.Store, dir, folder string, bodies bool) (*ledger.Store,
	error) {
	into, err := ledger.Open(ctx, "sqlite:"+filepath.Join(folder, "whole.db")+"?sync=normal")
	if err != nil {
		return nil, err
	}
	into.Whole, into.Exclusive, into.NoBodies = true, true, !bodies
	if err := Copy(ctx, store, dir, into, bodies); err != nil {
		_ = into.Close() // what it holds is incomplete
		return nil, err
	}
	return into, nil
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
