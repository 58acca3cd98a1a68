//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ledger

import (
	"errors"
	"os"
	"syscall"
)

// canLock says whether files can be locked here so that a lock ends with its process.
const canLock = true

func tryLock(f *os.File) bool { return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) }

// waitLock blocks a thread until the lock comes; false where it cannot.
func waitLock(f *os.File) bool { return flock(f, syscall.LOCK_EX) }

func unlock(f *os.File) { flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) bool {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err == nil
		}
	}
}
