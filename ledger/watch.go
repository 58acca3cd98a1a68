package ledger

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Waking up. A commit that made a job claimable is announced: to this process through channels, to others through
// a doorbell, a file in a folder of its own beside the ledger that is touched after COMMIT. Only speed rests on the
// bell. Where it cannot be watched or rung, watchers learn of other processes' commits by asking SQLite for its data
// version now and then, which costs next to nothing.

const (
	bellFolder = ".bell" // behind the ledger's own name
	bellFile   = "bell"
	bellAnew   = time.Second      // how long ringers keep the file open, since it may be another by then, or not be there yet
	bellRetry  = 10 * time.Second // after which a bell that could not be watched is hung up again
)

var (
	versionEvery = 250 * time.Millisecond // how often the data version is looked at
	versionOnly  = 100 * time.Millisecond // where there is no bell; a look costs some 20 µs
)

// Announce says that this transaction makes a job claimable, now or later: watchers are woken once it is durable.
func (tx *Tx) Announce() { tx.store.announces = true }

// announce tells everybody, after the commit.
func (s *Store) announce() {
	s.watchers.wake()
	s.engine.ring()
}

// watchers are those who wait in this process.
type watchers struct {
	mu    sync.Mutex
	chans map[chan struct{}]bool
	quit  context.CancelFunc // of the goroutine that listens to other processes; nil: there is none
	done  sync.WaitGroup     // of all such goroutines

	listening sync.Mutex // held by the one that listens: the one before may still be about to end
}

// Watch returns a channel that receives after a commit, of this process or another, that may have made a job
// claimable, and when the Store is closed. It has room for one: a receiver that was busy misses nothing but the
// count. It may receive in vain, and, if the machine is short of something, late; so look by yourself now and then.
// stop ends it.
func (s *Store) Watch() (woken <-chan struct{}, stop func()) {
	w := &s.watchers
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chans == nil {
		w.chans = make(map[chan struct{}]bool)
	}
	w.chans[c] = true
	if w.quit == nil && !s.Alone && !s.closed.Load() {
		ctx, cancel := context.WithCancel(context.Background())
		w.quit = cancel
		w.done.Go(func() {
			w.listening.Lock()
			defer w.listening.Unlock()
			s.engine.listen(ctx, w.wake)
		})
	}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.chans, c); len(w.chans) == 0 {
			w.deafen()
		}
	}
}

// wake tells the watchers of this process.
func (w *watchers) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.chans {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// any reports whether somebody waits.
func (w *watchers) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.chans) > 0
}

// deafen ends the listening to other processes.
func (w *watchers) deafen() {
	if w.quit != nil {
		w.quit()
		w.quit = nil
	}
}

// close ends the listening and wakes those who wait, so that they see that the Store is closed.
func (w *watchers) close() {
	w.mu.Lock()
	w.deafen()
	w.mu.Unlock()
	w.done.Wait()
	w.wake()
}

// listen calls wake when another process rings or has committed.
func (f *file) listen(ctx context.Context, wake func()) {
	version := f.reader.read(ctx, f.path)
	bell, hungUp := hangBell(f.path), time.Now()
	defer func() { bell.close() }()
	wake() // for what came before the bell hung
	tick := time.NewTimer(bell.patience())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-bell.rung:
			wake()
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				bell.close() // somebody has tidied up
			}
		case <-bell.trouble: // more rings than fit, say: one of them is enough
			wake()
			bell.close()
		case <-tick.C:
			if v := f.reader.read(ctx, f.path); v != version {
				version = v
				wake()
			}
			if bell.rung == nil && time.Since(hungUp) > bellRetry {
				bell, hungUp = hangBell(f.path), time.Now()
			}
			tick.Reset(bell.patience())
		}
	}
}

// versionReader asks for SQLite's data version on a connection of its own, for the number counts from there.
type versionReader struct{ session *session }

// read returns a number that changes when another connection has committed. Where it cannot be had, the number
// changes each time, so that those who wait look by themselves.
func (r *versionReader) read(ctx context.Context, path string) int64 {
	if r.session == nil {
		var err error
		if r.session, err = connect(ctx, readerURL(path)); err != nil {
			r.session = nil
			return time.Now().UnixNano()
		}
	}
	version, err := r.ask()
	if err != nil {
		return time.Now().UnixNano()
	}
	return version
}

func (r *versionReader) ask() (version int64, err error) {
	rows, err := r.session.query(context.Background(), `PRAGMA data_version`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&version)
	}
	if err == nil {
		err = rows.Err()
	}
	return version, err
}

func (r *versionReader) close() {
	if r.session != nil {
		_ = r.session.close()
		r.session = nil
	}
}

// hungBell is the doorbell as a listener has it; the zero hungBell never rings.
type hungBell struct {
	watcher *fsnotify.Watcher
	rung    <-chan fsnotify.Event
	trouble <-chan error
}

// hangBell makes the doorbell and watches it. Where that is refused, it is one that never rings.
func hangBell(path string) hungBell {
	if makeBell(path) != nil {
		return hungBell{}
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return hungBell{}
	}
	if err := watcher.Add(path + bellFolder); err != nil {
		_ = watcher.Close()
		return hungBell{}
	}
	return hungBell{watcher, watcher.Events, watcher.Errors}
}

// patience is how long to go by the bell alone.
func (b *hungBell) patience() time.Duration {
	if b.rung == nil {
		return versionOnly
	}
	return versionEvery
}

func (b *hungBell) close() {
	if b.watcher != nil {
		_ = b.watcher.Close()
	}
	*b = hungBell{}
}

// makeBell makes the folder and the file in it, for those who may use the ledger itself: whoever can write that can
// ring.
func makeBell(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	folder := path + bellFolder
	if err := makeFor(os.Mkdir(folder, 0o700), folder, mode|mode&0o444>>2); err != nil {
		return err
	}
	file := filepath.Join(folder, bellFile)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	return makeFor(err, file, mode)
}

// makeFor sets the mode of what has been made just now, past the umask; what was there already stays as it is.
func makeFor(err error, name string, mode fs.FileMode) error {
	switch {
	case err == nil:
		return os.Chmod(name, mode)
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return err
}

// bell is the doorbell as a ringer has it. It belongs to the commit loop.
type bell struct {
	file  *os.File // nil: nobody has hung one up, or it cannot be rung
	since time.Time
}

// ring touches the bell, if somebody has hung one up.
func (b *bell) ring(path string) {
	if now := time.Now(); now.Sub(b.since) > bellAnew {
		b.close()
		b.file, _ = os.OpenFile(filepath.Join(path+bellFolder, bellFile), os.O_WRONLY, 0)
		b.since = now
	}
	if b.file != nil {
		_, _ = b.file.WriteAt([]byte{'\n'}, 0) // a bell that is out of order costs speed only
	}
}

func (b *bell) close() {
	if b.file != nil {
		_ = b.file.Close()
		b.file = nil
	}
}
