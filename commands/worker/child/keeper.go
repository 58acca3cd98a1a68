//go:build unix

package child

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeper keeps the lease of a command of which a process lives that may not be signalled, while the worker is
// dead or frozen. Its program is a child of the supervising parent, which must neither kill it with the
// command's nor take it for one of them.
type keeper struct {
	keep  *keep     // nil: there is nothing to run
	alone bool      // the worker has died
	over  bool      // the lease is not to be kept any more
	next  time.Time // when to run it next

	mu    sync.Mutex
	pid   int // of the program that runs; 0: none does
	since time.Time
	gone  bool // the ledger has said that the claim is over
	tries bool // it could not keep the lease the last time, which may pass
}

// keeperTimeout bounds one run of the program.
const keeperTimeout = time.Minute

// run runs the program if its time has come, saying which process may not be signalled, and why.
func (k *keeper) run(s *supervisor, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	switch {
	case k.keep == nil || k.over || k.gone || why == "":
		return
	case k.pid != 0:
		if now.Sub(k.since) > keeperTimeout {
			_ = unix.Kill(k.pid, unix.SIGKILL)
		}
		return
	case now.Before(k.next):
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	args := append(texts(k.keep.Args), why)
	k.next, k.since = now.Add(k.keep.Every), now
	path := args[0]
	args[0] = os.Args[0] // the name by which users find it in a list of processes
	// #nosec G204 -- what the worker has named, which is this program
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{Env: texts(k.keep.Env),
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		return
	}
	k.pid = pid
	if !s.adopts { // else hold reaps it
		go func() {
			var status syscall.WaitStatus
			for {
				if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
					break
				}
			}
			k.reaped(pid, status)
		}()
	}
}

// reaped takes in the end of a child of the supervising parent, which may be the program.
func (k *keeper) reaped(pid int, status syscall.WaitStatus) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if pid != k.pid {
		return
	}
	k.pid = 0
	switch code := status.ExitStatus(); code {
	case 0, 5: // kept; 5: the job was cancelled, and others wait for the end of the command
		k.tries = false
	case 4, 6, 7: // the claim is not live any more
		k.gone = true
	default:
		k.tries = true
	}
}

// process returns the process of the program; 0 if it does not run.
func (k *keeper) process() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pid
}

// wait returns how long to wait before run is called again.
func (k *keeper) wait() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keep == nil || k.gone || k.over {
		return stuckLook
	}
	if k.tries && k.pid == 0 {
		k.tries, k.next = false, time.Now().Add(min(time.Second, k.keep.Every))
	}
	return min(max(time.Until(k.next), 100*time.Millisecond), stuckLook)
}
