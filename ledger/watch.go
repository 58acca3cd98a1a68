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
	bellFolder   = ".bell" // behind the ledger's own name
	bellFile     = "bell"
	versionEvery = 250 * time.Millisecond // how often the data version is looked at
	bellRetry    = time.Second            // how long a bell that was not there is left alone
)

// Announce says that this transaction makes a job claimable, now or later: watchers are woken once it is durable.
func (tx *Tx) Announce() { tx.store.announces = true }

// watchers are those who wait in this process.
type watchers struct {
	mu    sync.Mutex
	chans map[chan struct{}]bool
	bell  *os.File  // open for writing once somebody has hung it up
	tried time.Time // when opening it failed last
	quit  context.CancelFunc
	done  sync.WaitGroup
}

// Watch returns a channel that receives after a commit, of this process or another, that may have made a job
// claimable. It has room for one: a receiver that was busy misses nothing but the count. It may receive in vain.
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
	if w.quit == nil && !s.closed.Load() {
		ctx, cancel := context.WithCancel(context.Background())
		w.quit = cancel
		w.done.Go(func() { s.watchOthers(ctx) })
	}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.chans, c)
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

// announce tells everybody, after the commit.
func (s *Store) announce() {
	s.watchers.wake()
	s.watchers.ring(s.path)
}

// ring touches the bell, if somebody has hung one up.
func (w *watchers) ring(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bell == nil {
		if time.Since(w.tried) < bellRetry {
			return
		}
		f, err := os.OpenFile(filepath.Join(path+bellFolder, bellFile), os.O_WRONLY, 0)
		if err != nil {
			w.tried = time.Now()
			return
		}
		w.bell = f
	}
	if _, err := w.bell.WriteAt([]byte{'\n'}, 0); err != nil {
		_ = w.bell.Close()
		w.bell = nil
	}
}

// close ends the watching.
func (w *watchers) close() {
	w.mu.Lock()
	quit := w.quit
	w.mu.Unlock()
	if quit != nil {
		quit()
	}
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bell != nil {
		_ = w.bell.Close()
		w.bell = nil
	}
}

// watchOthers wakes the watchers of this process when another process rings or has committed.
func (s *Store) watchOthers(ctx context.Context) {
	var rung <-chan fsnotify.Event
	var trouble <-chan error
	if bell := hangBell(s.path); bell != nil {
		defer bell.Close()
		rung, trouble = bell.Events, bell.Errors
	}
	version := s.dataVersion(ctx)
	tick := time.NewTicker(versionEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-rung:
			s.watchers.wake()
		case <-trouble: // too many events at once, say: one of them is enough
			s.watchers.wake()
		case <-tick.C:
			if v := s.dataVersion(ctx); v != version {
				version = v
				s.watchers.wake()
			}
		}
	}
}

// dataVersion is a number that changes when another connection has committed; 0 when it cannot be asked for.
func (s *Store) dataVersion(ctx context.Context) (version int64) {
	s.versionOnce.Do(func() { s.versionReader, _ = connect(ctx, readerURL(s.path)) })
	if s.versionReader == nil {
		return time.Now().UnixNano() // look in any case
	}
	rows, err := s.versionReader.query(context.Background(), `PRAGMA data_version`)
	if err != nil {
		return 0
	}
	defer rows.Close()
	if rows.Next() {
		_ = rows.Scan(&version)
	}
	return version
}

// hangBell makes the doorbell and watches it; nil where that is refused.
func hangBell(path string) *fsnotify.Watcher {
	folder := path + bellFolder
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(folder, bellFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil
	}
	_ = f.Close()
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil
	}
	if err := watcher.Add(folder); err != nil {
		_ = watcher.Close()
		return nil
	}
	return watcher
}
