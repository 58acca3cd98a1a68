//go:build unix && !linux

package ledger

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// canLockWhole says whether a file can be kept from all others.
const canLockWhole = true

// lockWhole takes the lock on f that SQLite calls exclusive: all the bytes on which it ever locks. It does not notice
// who has the file open in this process.
func lockWhole(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: lockStart, Len: lockLength})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errInUse
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// keepName is done without here: the file is compared with its name once SQLite has a lock on it.
func keepName(string) (*os.File, error) { return nil, nil }
