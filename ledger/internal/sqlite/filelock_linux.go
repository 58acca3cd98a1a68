package sqlite

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"

	"jobledger/ledger/failpoint"
)

// canLockFile says whether all other users can be kept from a file.
const canLockFile = true

// lockFile takes the lock on f that SQLite calls exclusive: all bytes on which it ever locks, and pinByte.
// The lock belongs to f's open file description, so it also conflicts with other descriptions in this
// process.
func lockFile(f *os.File) error {
	return lockRange(f, unix.F_WRLCK, lockStart, lockLength+1)
}

// lockRange takes a lock on bytes of f without waiting; errInUse if another lock conflicts.
func lockRange(f *os.File, kind int16, start, length int64) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: start, Len: length})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errInUse
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// pinName keeps the file at path from being replaced until what it returns is closed; nil if there is no
// such lock. SQLite opens a file and its sidecar files by name, in several steps, before it has a lasting
// lock. If the file were replaced between two of them, SQLite would use the sidecar files of another ledger.
// Errors: errInUse while the file is being replaced.
func pinName(path string) (*os.File, error) {
	if !sqlite.OFDLockingEnabled() { // closing the file would drop SQLite's locks
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil // SQLite will report why
	}
	if err := lockRange(f, unix.F_RDLCK, pinByte, 1); err != nil {
		_ = f.Close()
		if errors.Is(err, errInUse) {
			failpoint.Hit("met")
			return nil, err
		}
		return nil, nil
	}
	mine, mineErr := f.Stat()
	named, namedErr := os.Stat(path)
	if mineErr == nil && namedErr == nil && !os.SameFile(mine, named) { // replaced before it was locked
		_ = f.Close()
		return nil, errInUse
	}
	return f, nil
}
