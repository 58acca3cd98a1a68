package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// retryBusy calls fn until it returns something else than "busy" or wait is over, counted from since. The pauses
// are short and random: SQLite's own busy timeout backs off up to 100 ms and starves whoever has waited longest.
func retryBusy(ctx context.Context, since time.Time, wait time.Duration, fn func() error) error {
	for {
		err := fn()
		if !isBusy(err) {
			return err
		}
		if time.Since(since) > wait {
			return fmt.Errorf("%w: the write lock did not come within %s", ErrBusy, wait)
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
	for _, known := range []error{ErrBusy, ErrFull, ErrIO, ErrReadOnly, ErrReplaced, ErrNotALedger, ErrDamaged} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch code(err) {
	case sqlite3.SQLITE_IOERR_SHMSIZE: // there was no room for the -shm file
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite3.SQLITE_READONLY_DBMOVED:
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_OK:
		return err
	case sqlite3.SQLITE_ERROR: // no statement of this program is wrong by itself
		for _, damage := range []string{"malformed JSON", "no such column", "no such table"} {
			if strings.Contains(err.Error(), damage) {
				return fmt.Errorf("%w: %w", ErrDamaged, err)
			}
		}
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL:
		return fmt.Errorf("%w: %w", ErrIO, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrNotALedger, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
