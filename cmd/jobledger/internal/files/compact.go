package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/failpoint"
)

// Compacted describes what Compact did.
type Compacted struct {
	Before, After int64 // size of the file in bytes
}

// Compact rewrites the ledger at path without its free pages, so that the file is as small as possible and
// can shrink later. The copy is checked and durable before it takes the name of the ledger, in one step; then
// the old file is removed. A crash leaves one of the two as the ledger, and at most one more file next to it.
// The folder needs room for the copy.
//
// Errors: InUseError if the ledger is open in any process; ErrOwner; ErrUnsound if the copy fails the checks
// of SQLite; ledger.ErrEngine where the system is not Linux.
func Compact(ctx context.Context, path string) (done Compacted, err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return done, err
	}
	lock, err := ledger.LockExclusive(ctx, path, false)
	if errors.Is(err, ledger.ErrBusy) {
		return done, inUse(path)
	}
	if err != nil {
		return done, err
	}
	defer lock.Release()
	before, err := os.Stat(path)
	if err != nil {
		return done, err
	}
	s, err := newStaging(path)
	if err != nil {
		return done, err
	}
	defer s.discard()
	if err := lock.Compact(ctx, s.temp); err != nil {
		return done, fmt.Errorf("compact %s: %w", path, err)
	}
	if err := compareCopy(ctx, path, s.temp); err != nil {
		return done, err
	}
	after, err := syncFile(s.temp)
	if err != nil {
		return done, err
	}
	if err := copyOwner(s.temp, before); err != nil {
		return done, refuse(ErrOwner, "give the compacted ledger to the owner of the old one: %w", err)
	}
	failpoint.Hit("compact-checked")
	kept, err := replaceKeeping(lock, path, s.temp, time.Now())
	if err != nil {
		return done, err
	}
	if err := os.Remove(kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, err
	}
	return Compacted{Before: before.Size(), After: after}, nil
}

// compareCopy checks the structure of the copy of a locked ledger, and that it ends with the same event.
func compareCopy(ctx context.Context, path, fresh string) error {
	var want, got int64
	err := ledger.InspectFileOnly(ctx, path, func(tx *ledger.Tx, _ ledger.FileFacts) (err error) {
		want, err = tx.Tail(ctx)
		return err
	})
	if err != nil {
		return err
	}
	var problems []string
	err = ledger.InspectFileOnly(ctx, fresh, func(tx *ledger.Tx, _ ledger.FileFacts) (err error) {
		if problems, err = tx.Integrity(ctx); err == nil {
			got, err = tx.Tail(ctx)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(problems) > 0:
		return refuse(ErrUnsound, "the copy of %s is not whole, and the ledger is as it was: SQLite says: %s", path,
			problems[0])
	case got != want:
		return refuse(ErrUnsound, "the copy of %s ends at position %d instead of %d, and the ledger is as it was",
			path, got, want)
	}
	return nil
}
