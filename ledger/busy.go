package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
		case <-time.After(100*time.Microsecond + rand.N(200*time.Microsecond)):
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
	return code(err)&0xff == sqlite3.SQLITE_BUSY
}

// explain wraps SQLite's error in the sentinel that callers branch on, once.
func explain(err error) error {
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrFull) || errors.Is(err, ErrNotALedger) || errors.Is(err, ErrDamaged) {
		return err
	}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_OK:
		return err
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrNotALedger, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
