package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/ledger/internal/engine"
)

// withCause adds the system's reason to an error of the ledger at path. SQLite reports that it cannot open or
// write a file, but not why.
func withCause(path string, err error) error {
	if err == nil {
		return nil
	}
	cannotOpen := errors.Is(err, engine.ErrIO) && code(err)&0xff == sqlite3.SQLITE_CANTOPEN
	if !cannotOpen && !errors.Is(err, engine.ErrReadOnly) {
		return err
	}
	why := causeOf(path)
	switch {
	case why == nil:
		return err
	case errors.Is(err, engine.ErrUnknown):
		return fmt.Errorf("%w: %w", err, why)
	case errors.Is(err, engine.ErrReadOnly):
		return fmt.Errorf("%w: %w", engine.ErrReadOnly, why)
	case errors.Is(why, fs.ErrPermission): // which does not pass, while an ErrIO may
		return why
	}
	return fmt.Errorf("%w: %w", err, why)
}

// causeOf asks the system for the reason. It opens no file of the ledger, because closing it would drop
// SQLite's locks.
func causeOf(path string) error {
	null, err := os.Open(os.DevNull)
	if err == nil {
		err = null.Close()
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok { // too many open files
		return errno
	}
	return denied(path)
}
