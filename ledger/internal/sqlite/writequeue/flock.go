//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package writequeue

import (
	"errors"
	"os"
	"syscall"
)

// canQueue says whether a lock on a file ends with its process here.
const canQueue = true

func tryLock(f *os.File) bool { return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) }

// waitLock blocks a thread until it has the lock; false if that fails.
func waitLock(f *os.File) bool { return flock(f, syscall.LOCK_EX) }

func unlock(f *os.File) { flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) bool {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err == nil
		}
	}
}
