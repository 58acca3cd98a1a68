package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite says that a file cannot be opened or written, and keeps to itself what the system said. Whoever has to do
// something about it needs that.

// withObstacle adds to an error of the ledger at path what stands in the way, as far as that can be found out.
func withObstacle(path string, err error) error {
	if err == nil {
		return nil
	}
	cannotOpen := errors.Is(err, ErrIO) && code(err)&0xff == sqlite3.SQLITE_CANTOPEN
	if !cannotOpen && !errors.Is(err, ErrReadOnly) {
		return err
	}
	why := obstacle(path)
	switch {
	case why == nil:
		return err
	case errors.Is(err, ErrUnknown):
		return fmt.Errorf("%w: %w", err, why)
	case errors.Is(err, ErrReadOnly):
		return fmt.Errorf("%w: %w", ErrReadOnly, why)
	case errors.Is(why, fs.ErrPermission): // which does not pass, as an ErrIO may
		return why
	}
	return fmt.Errorf("%w: %w", err, why)
}

// obstacle asks the system what SQLite may have come across. It opens no file of the ledger: to close one would drop
// SQLite's locks.
func obstacle(path string) error {
	null, err := os.Open(os.DevNull)
	if err == nil {
		err = null.Close()
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok { // too many open files
		return errno
	}
	return denied(path)
}
