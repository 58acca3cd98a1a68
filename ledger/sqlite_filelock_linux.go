package ledger

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"

	"jobledger/ledger/failpoint"
)

// canLockWhole says whether a file can be kept from all others.
const canLockWhole = true

// lockWhole takes the lock on f that SQLite calls exclusive, all the bytes on which it ever locks, and nameLock. It
// belongs to f's description, so that another description in this process is in its way too.
func lockWhole(f *os.File) error {
	return lockRange(f, unix.F_WRLCK, lockStart, lockLength+1)
}

// lockRange takes a lock on bytes of f without waiting. Errors: errInUse where it is in another's way.
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

// keepName keeps anybody from exchanging the file at path until what it returns is closed, which is nil where there is no
// such lock. SQLite opens a file, and each of the files beside it, by name and in several steps before it has a lock that
// lasts; were the file exchanged between two of them, it would read and write those of another ledger. Errors: errInUse
// while somebody exchanges it.
func keepName(path string) (*os.File, error) {
	if !sqlite.OFDLockingEnabled() { // to close the file would drop SQLite's locks
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil // SQLite says why
	}
	if err := lockRange(f, unix.F_RDLCK, nameLock, 1); err != nil {
		_ = f.Close()
		if errors.Is(err, errInUse) {
			failpoint.Hit("met")
			return nil, err
		}
		return nil, nil
	}
	mine, mineErr := f.Stat()
	named, namedErr := os.Stat(path)
	if mineErr == nil && namedErr == nil && !os.SameFile(mine, named) { // exchanged before it was locked
		_ = f.Close()
		return nil, errInUse
	}
	return f, nil
}
