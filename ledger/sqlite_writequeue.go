package ledger

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

// Taking turns. Whoever polls for SQLite's write lock gets it by chance, and a process that has just let go of it has
// the best chance. So processes that get in each other's way line up at a turnstile: each locks the file "gate", then
// the file "lock", unlocks "gate", and keeps "lock" until its transaction has ended. One waits between the two, the
// others before the gate, and the kernel lets them pass in the order in which they came. The files stand beside the
// bell. Only fairness rests on them: SQLite's lock stays the truth, and a process that is alone never touches them.

const (
	turnWait = 500 * time.Millisecond // then without a turn: its holder may have been stopped
	turnMode = time.Second            // how long to line up after others were last in the way
	gateFile = "gate"
	lockFile = "lock"
)

// turn is a process's place at the turnstile. It belongs to the commit loop.
type turn struct {
	files   *turnFiles // nil: not open
	since   time.Time  // when they were opened
	until   time.Time  // line up so long
	taken   bool
	pending *approach // one that was given up; while it lasts, there are no turns
}

// turnFiles are the open files of the turnstile.
type turnFiles struct{ gate, lock *os.File }

// approach is a wait at the turnstile that may outlast the patience of the one who waits.
type approach struct {
	files  *turnFiles
	done   chan struct{} // closed: it has come through, or cannot
	passed bool          // it has come through; read it after done
	state  atomic.Int32  // waiting, taken or left
}

// linesUp reports whether to line up without trying SQLite's lock first.
func (t *turn) linesUp() bool { return !t.until.IsZero() && time.Now().Before(t.until) }

// take waits for a turn, for a while. Whether it came or not, go on; give ends it. busy says that SQLite's lock was
// just seen in other hands.
func (t *turn) take(ctx context.Context, path string, wait time.Duration, busy bool) {
	now := time.Now()
	if busy {
		t.until = now.Add(turnMode)
	}
	if !t.ready(path, now) {
		return
	}
	if t.files.tryPass() {
		t.taken = true
		failpoint.Hit("turn")
		return
	}
	t.until = now.Add(turnMode)
	a := &approach{files: t.files, done: make(chan struct{})}
	go a.wait()
	timer := time.NewTimer(min(wait, turnWait))
	defer timer.Stop()
	select {
	case <-a.done:
	case <-ctx.Done():
	case <-timer.C:
	}
	if a.state.CompareAndSwap(waiting, left) {
		t.pending, t.files = a, nil
		return
	}
	<-a.done
	t.taken = a.passed
}

// ready opens the files, now and then anew, since others may have made them anew.
func (t *turn) ready(path string, now time.Time) bool {
	if t.pending != nil {
		select {
		case <-t.pending.done:
			t.pending = nil
		default:
			return false
		}
	}
	if now.Sub(t.since) < bellAnew {
		return t.files != nil
	}
	t.files.close()
	t.files, t.since = openTurn(path), now
	return t.files != nil
}

// give lets the next one pass.
func (t *turn) give() {
	if t.taken {
		t.taken = false
		unlock(t.files.lock)
	}
}

func (t *turn) close() {
	t.give()
	t.files.close()
	t.files = nil
}

// tryPass passes if nobody is there.
func (f *turnFiles) tryPass() bool {
	if !tryLock(f.gate) {
		return false
	}
	failpoint.Hit("gate")
	passed := tryLock(f.lock)
	unlock(f.gate)
	return passed
}

// wait passes when it is its turn. An approach that was given up closes its files, which lets the next one pass.
func (a *approach) wait() {
	defer close(a.done)
	if waitLock(a.files.gate) {
		a.passed = waitLock(a.files.lock)
		unlock(a.files.gate)
	}
	if !a.state.CompareAndSwap(waiting, taken) {
		a.files.close()
	}
}

// openTurn opens the turnstile's files, for those who may write the ledger. Nil where there is none.
func openTurn(path string) *turnFiles {
	if !canLock || makeBell(path) != nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	mode := info.Mode().Perm() & 0o222
	mode |= mode << 1
	f := &turnFiles{openTurnFile(filepath.Join(path+bellFolder, gateFile), mode), openTurnFile(filepath.Join(path+bellFolder, lockFile), mode)}
	if f.gate == nil || f.lock == nil {
		f.close()
		return nil
	}
	return f
}

// openTurnFile opens a file and makes it where it is missing. Nil where it cannot be had.
func openTurnFile(name string, mode fs.FileMode) *os.File {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return file
	}
	file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // another process was first
		file, _ = os.OpenFile(name, os.O_RDWR, 0)
	} else if err == nil {
		_ = os.Chmod(name, mode) // past the umask; where that fails, others have no turns
	}
	return file
}

func (f *turnFiles) close() {
	if f == nil {
		return
	}
	for _, file := range []*os.File{f.lock, f.gate} {
		if file != nil {
			_ = file.Close()
		}
	}
}
