//go:build unix && !linux

package sqlite

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// canLockFile says whether all other users can be kept from a file.
const canLockFile = true

// lockFile takes the lock on f that SQLite calls exclusive: all bytes on which it ever locks. It does not
// conflict with locks of this process.
func lockFile(f *os.File) error {
	all := unix.Flock_t{Type: unix.F_WRLCK, Start: lockStart, Len: lockLength}
	err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &all)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errInUse
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// pinName does nothing here: the file is compared with its name once SQLite has a lock on it.
func pinName(string) (*os.File, error) { return nil, nil }
