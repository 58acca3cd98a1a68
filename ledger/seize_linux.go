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
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: lockStart, Len: lockLength + 1})
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
	if err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Start: nameLock, Len: 1}); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			failpoint.Hit("met")
			return nil, errInUse
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
