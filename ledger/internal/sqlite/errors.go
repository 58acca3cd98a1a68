package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/ledger/internal/engine"
)

// retryBusy calls fn until it returns anything but "busy", or until wait is over, counted from since. The
// pauses are short and random: SQLite's own busy timeout backs off up to 100 ms and starves the process that
// has waited longest.
func retryBusy(ctx context.Context, since time.Time, wait time.Duration, fn func() error) error {
	for {
		err := fn()
		if !isBusy(err) {
			return err
		}
		if time.Since(since) > wait {
			return fmt.Errorf("%w: no write lock within %s", engine.ErrBusy, wait)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100*time.Microsecond + rand.N(200*time.Microsecond)): // #nosec G404 -- no secret
		}
	}
}

func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func isBusy(err error) bool {
	return code(err)&0xff == sqlite3.SQLITE_BUSY || errors.Is(err, errInUse)
}

// explain wraps SQLite's error in the sentinel that callers branch on, once.
func explain(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{engine.ErrBusy, engine.ErrFull, engine.ErrIO, engine.ErrReadOnly,
		engine.ErrReplaced, engine.ErrNotALedger, engine.ErrDamaged, engine.ErrConstraint} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch code(err) {
	case sqlite3.SQLITE_IOERR_SHMSIZE: // there was no room for the -shm file
		return fmt.Errorf("%w: %w", engine.ErrFull, err)
	case sqlite3.SQLITE_READONLY_DBMOVED:
		return fmt.Errorf("%w: %w", engine.ErrReplaced, err)
	}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_OK:
		return err
	case sqlite3.SQLITE_ERROR: // the statements of this program are right, so the schema is not
		for _, damage := range []string{"malformed JSON", "no such column", "no such table",
			"unsupported file format"} {
			if strings.Contains(err.Error(), damage) {
				return fmt.Errorf("%w: %w", engine.ErrDamaged, err)
			}
		}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", engine.ErrBusy, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", engine.ErrFull, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL:
		return fmt.Errorf("%w: %w", engine.ErrIO, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%w: %w", engine.ErrReadOnly, err)
	case sqlite3.SQLITE_CONSTRAINT:
		return constraintError{err}
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", engine.ErrNotALedger, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %w", engine.ErrDamaged, err)
	}
	return err
}

// constraintError is ErrConstraint with the text of SQLite's error.
type constraintError struct{ error }

func (e constraintError) Is(target error) bool { return target == engine.ErrConstraint }

func (e constraintError) Unwrap() error { return e.error }
