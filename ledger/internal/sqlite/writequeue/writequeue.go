package writequeue

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/sqlite/doorbell"
)

const (
	// then a process goes on without the queue: its holder may be stopped
	queueWait      = 500 * time.Millisecond
	contentionTime = time.Second // how long to queue up after the last competition
	gateName       = "gate"
	lockName       = "lock"
	reopenAfter    = time.Second // then the files are opened again: another process may have replaced them
)

// Queue is the place of a process in the queue. The zero Queue is ready; it is not safe for concurrent use.
type Queue struct {
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

// Contended reports whether to queue up without trying SQLite's lock first.
func (q *Queue) Contended() bool { return !q.until.IsZero() && time.Now().Before(q.until) }

// Acquire waits in the queue for a limited time. The caller goes on in any case, and calls Release at the
// end. busy says that SQLite's lock was just held by another process.
func (q *Queue) Acquire(ctx context.Context, path string, wait time.Duration, busy bool) {
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

// ready opens the files. It opens them again after reopenAfter.
func (q *Queue) ready(path string, now time.Time) bool {
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

// Release admits the next process.
func (q *Queue) Release() {
	if q.held {
		q.held = false
		unlock(q.files.lock)
	}
}

// Close admits the next process and closes the files.
func (q *Queue) Close() {
	q.Release()
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

// LockFile returns the name of the file that the process at the head of the queue has locked, for the ledger
// at path.
func LockFile(path string) string { return filepath.Join(doorbell.Folder(path), lockName) }

// Hold acquires the lock of the queue at path and keeps it until the process ends. It is for tests.
func Hold(path string) bool {
	held := openQueue(path)
	heldForTests = append(heldForTests, held)
	return held != nil && waitLock(held.gate) && waitLock(held.lock)
}

var heldForTests []*queueFiles // reachable, or a finalizer would close the files

// openQueue opens the files of the queue; nil where it cannot. Users who can write the ledger can write them.
func openQueue(path string) *queueFiles {
	if !canQueue || doorbell.Make(path) != nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	mode := info.Mode().Perm() & 0o222
	mode |= mode << 1
	f := &queueFiles{
		gate: openQueueFile(path, gateName, mode),
		lock: openQueueFile(path, lockName, mode),
	}
	if f.gate == nil || f.lock == nil {
		f.close()
		return nil
	}
	return f
}

// openQueueFile opens a file, and makes it if it is missing; nil where it cannot.
func openQueueFile(path, name string, mode fs.FileMode) *os.File {
	file, err := doorbell.OpenFile(path, name, os.O_RDWR, mode)
	if err != nil {
		return nil
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
