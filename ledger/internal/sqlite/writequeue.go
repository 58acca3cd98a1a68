package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"jobledger/ledger/failpoint"
)

// The write queue. Polling for SQLite's write lock is unfair: the last holder usually wins it back. So
// processes that compete for it queue up: each locks the file "gate", then the file "lock", unlocks "gate",
// and keeps "lock" until its transaction has ended. One process waits between the two and the others wait
// before the gate; the kernel admits them in the order in which they came. The files are next to the
// doorbell. Only fairness depends on the queue: SQLite's own lock decides, and a process without competition
// never touches these files.

const (
	// then a process goes on without the queue: its holder may be stopped
	queueWait      = 500 * time.Millisecond
	contentionTime = time.Second // how long to queue up after the last competition
	gateName       = "gate"
	lockName       = "lock"
)

// writeQueue is the place of a process in the queue. It belongs to the commit loop.
type writeQueue struct {
	files     *queueFiles // nil: not open
	opened    time.Time   // when the files were opened
	until     time.Time   // queue up until then
	held      bool
	abandoned *ticket // whose wait has not ended; there is no queue until it has
}

// queueFiles are the open files of the queue.
type queueFiles struct{ gate, lock *os.File }

// ticket is a wait in the queue that may last longer than its process wants to wait.
type ticket struct {
	files    *queueFiles
	done     chan struct{} // closed: the wait has ended
	acquired bool          // the lock was acquired; read it after done
	state    atomic.Int32  // ticketWaiting, ticketTaken or ticketAbandoned
}

const (
	ticketWaiting int32 = iota
	ticketTaken
	ticketAbandoned
)

// contended reports whether to queue up without trying SQLite's lock first.
func (q *writeQueue) contended() bool { return !q.until.IsZero() && time.Now().Before(q.until) }

// acquire waits in the queue for a limited time. The caller goes on in any case, and calls release at the
// end. busy says that SQLite's lock was just held by another process.
func (q *writeQueue) acquire(ctx context.Context, path string, wait time.Duration, busy bool) {
	now := time.Now()
	if busy {
		q.until = now.Add(contentionTime)
	}
	if !q.ready(path, now) {
		return
	}
	if q.files.tryAcquire() {
		q.held = true
		failpoint.Hit("turn")
		return
	}
	q.until = now.Add(contentionTime)
	t := &ticket{files: q.files, done: make(chan struct{})}
	go t.wait()
	timer := time.NewTimer(min(wait, queueWait))
	defer timer.Stop()
	select {
	case <-t.done:
	case <-ctx.Done():
	case <-timer.C:
	}
	if t.state.CompareAndSwap(ticketWaiting, ticketAbandoned) {
		q.abandoned, q.files = t, nil
		return
	}
	<-t.done
	q.held = t.acquired
}

// ready opens the files. It opens them again now and then, since another process may have replaced them.
func (q *writeQueue) ready(path string, now time.Time) bool {
	if q.abandoned != nil {
		select {
		case <-q.abandoned.done:
			q.abandoned = nil
		default:
			return false
		}
	}
	if now.Sub(q.opened) < reopenAfter {
		return q.files != nil
	}
	q.files.close()
	q.files, q.opened = openQueue(path), now
	return q.files != nil
}

// release admits the next process.
func (q *writeQueue) release() {
	if q.held {
		q.held = false
		unlock(q.files.lock)
	}
}

func (q *writeQueue) close() {
	q.release()
	q.files.close()
	q.files = nil
}

// tryAcquire acquires the lock if no other process is in the queue.
func (f *queueFiles) tryAcquire() bool {
	if !tryLock(f.gate) {
		return false
	}
	failpoint.Hit("gate")
	acquired := tryLock(f.lock)
	unlock(f.gate)
	return acquired
}

// wait acquires the lock. A ticket that was abandoned closes its files, which admits the next process.
func (t *ticket) wait() {
	defer close(t.done)
	if waitLock(t.files.gate) {
		t.acquired = waitLock(t.files.lock)
		unlock(t.files.gate)
	}
	if !t.state.CompareAndSwap(ticketWaiting, ticketTaken) {
		t.files.close()
	}
}

// openQueue opens the files of the queue, which those who may write the ledger may write; nil where it
// cannot.
func openQueue(path string) *queueFiles {
	if !canQueue || makeDoorbell(path) != nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	mode := info.Mode().Perm() & 0o222
	mode |= mode << 1
	folder := path + doorbellFolder
	f := &queueFiles{
		gate: openQueueFile(filepath.Join(folder, gateName), mode),
		lock: openQueueFile(filepath.Join(folder, lockName), mode),
	}
	if f.gate == nil || f.lock == nil {
		f.close()
		return nil
	}
	return f
}

// openQueueFile opens a file, and makes it if it is missing; nil where it cannot.
func openQueueFile(name string, mode fs.FileMode) *os.File {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return file
	}
	file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // another process was first
		file, _ = os.OpenFile(name, os.O_RDWR, 0)
	} else if err == nil {
		_ = os.Chmod(name, mode) // regardless of the umask; if that fails, other users do without the queue
	}
	return file
}

func (f *queueFiles) close() {
	if f == nil {
		return
	}
	for _, file := range []*os.File{f.lock, f.gate} {
		if file != nil {
			_ = file.Close()
		}
	}
}
