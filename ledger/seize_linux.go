package ledger

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// canLockWhole says whether a file can be kept from all others.
const canLockWhole = true

// lockWhole takes the lock on f that SQLite calls exclusive: all the bytes on which it ever locks. The lock belongs to
// f's description, so that another description in this process is in its way too.
func lockWhole(f *os.File) error {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: lockStart, Len: lockLength})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errInUse
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}
