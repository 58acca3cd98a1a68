package ledger

import (
	"context"

	"jobledger/ledger/internal/engine"
)

// Vacuum writes a compacted, consistent copy of the ledger to path, which must not exist or be empty, while
// others write, and returns the pos of the last event in the copy. SQLite does not make the copy durable:
// sync the file before relying on it. ErrEngine with PostgreSQL.
func (s *Store) Vacuum(ctx context.Context, path string) (tail int64, err error) {
	if s == nil || s.engine == nil {
		return 0, ErrClosed
	}
	return s.engine.Vacuum(ctx, path)
}

// Checkpoint moves the content of the -wal file into the ledger's file and empties the -wal file; whole is
// false if a reader prevented that for as long as Checkpoint waits. SQLite also does this now and then; after
// an erasure, the bytes stay on the disk until then. With PostgreSQL it frees the space of erased bodies.
func (s *Store) Checkpoint(ctx context.Context) (whole bool, err error) {
	if s == nil || s.engine == nil {
		return false, ErrClosed
	}
	return s.engine.Checkpoint(ctx)
}

// TrimWAL empties a -wal file that a long read let grow beyond 16 MiB, once that read has ended. It waits for
// nothing and keeps no writer waiting; where it cannot be done now, trimmed is false. With PostgreSQL it does
// nothing.
func (s *Store) TrimWAL(ctx context.Context) (trimmed bool, err error) {
	if s == nil || s.engine == nil {
		return false, ErrClosed
	}
	return s.engine.TrimWAL(ctx)
}

// MoveWAL moves what is in the -wal file into the ledger's file, without keeping a writer waiting: one that
// changes many pages one transaction after another calls it between these, so that others need not do it with
// one of their commits. With PostgreSQL it does nothing.
func (s *Store) MoveWAL(ctx context.Context) error {
	if s == nil || s.engine == nil {
		return ErrClosed
	}
	return s.engine.MoveWAL(ctx)
}

// FreePages gives up to so many free pages of the ledger's file back to the system, in a short transaction,
// and returns how many are left. It does nothing to a file that was made before files could shrink: migrate
// --compact makes it one that can. With PostgreSQL it does nothing.
func (s *Store) FreePages(ctx context.Context, most int) (left int64, err error) {
	err = s.Write(ctx, func(tx *Tx) error {
		return tx.unbuffered(func(on *engine.Session) (err error) {
			left, err = tx.store.engine.FreePages(ctx, on, most)
			return err
		})
	})
	return left, err
}
