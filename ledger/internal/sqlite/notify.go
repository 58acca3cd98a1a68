package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"jobledger/ledger/internal/engine"
)

// The doorbell is a file in a folder of its own next to the ledger. A process touches it after a commit that
// made a job claimable, and other processes watch it. Only speed depends on it: listeners also poll SQLite's
// data version, which costs next to nothing, and do so more often where the doorbell cannot be watched.

const (
	doorbellFolder = ".bell"          // appended to the ledger's own name
	doorbellFile   = "bell"           // touched after a commit that made a job claimable
	endedFile      = "ended"          // touched after a commit that ended the claim of another process
	reopenAfter    = time.Second      // then a notifier opens the file again: it may be a new one
	watchRetry     = 10 * time.Second // between two attempts to watch the doorbell
)

// How often a listener polls the data version, with a doorbell and without one. Variables for the tests.
var (
	PollWithDoorbell    = 250 * time.Millisecond
	PollWithoutDoorbell = 100 * time.Millisecond // a poll costs some 20 µs
)

// Listen implements engine.Engine.
func (f *Engine) Listen(ctx context.Context, wake func(engine.Topic)) {
	version := f.version.read(ctx, f.path)
	bell, subscribed := subscribe(f.path), time.Now()
	defer func() { bell.close() }()
	wake(engine.AnyTopic) // for commits before the subscription
	tick := time.NewTimer(bell.pollInterval())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-bell.events:
			wake(topicOf(e.Name))
			if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
				bell.close()
			}
		case <-bell.errors: // more events than the kernel keeps, for example: one of them is enough
			wake(engine.AnyTopic)
			bell.close()
		case <-tick.C:
			if v := f.version.read(ctx, f.path); v != version {
				version = v
				wake(engine.AnyTopic)
			}
			if bell.events == nil && time.Since(subscribed) > watchRetry {
				bell, subscribed = subscribe(f.path), time.Now()
			}
			tick.Reset(bell.pollInterval())
		}
	}
}

// topicOf returns the topic of a doorbell file.
func topicOf(name string) engine.Topic {
	switch filepath.Base(name) {
	case doorbellFile:
		return engine.Claimable
	case endedFile:
		return engine.Ended
	}
	return engine.AnyTopic
}

// versionReader reads SQLite's data version on a connection of its own, because the number is relative to a
// connection.
type versionReader struct{ session *engine.Session }

// read returns a number that changes when another connection has committed. If the version cannot be read,
// the number changes each time, so that the listener wakes its watchers.
func (r *versionReader) read(ctx context.Context, path string) int64 {
	if r.session == nil {
		var err error
		if r.session, err = connect(ctx, readerURL(path)); err != nil {
			r.session = nil
			return time.Now().UnixNano()
		}
	}
	version, err := r.session.Int(context.Background(), `PRAGMA data_version`)
	if err != nil {
		return time.Now().UnixNano()
	}
	return version
}

func (r *versionReader) close() {
	if r.session != nil {
		_ = r.session.Close()
		r.session = nil
	}
}

// subscription is a watched doorbell; the zero subscription never reports anything.
type subscription struct {
	watcher *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
}

// subscribe makes the doorbell and watches it. It returns the zero subscription where the system refuses
// that.
func subscribe(path string) subscription {
	if makeDoorbell(path) != nil {
		return subscription{}
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return subscription{}
	}
	if err := watcher.Add(path + doorbellFolder); err != nil {
		_ = watcher.Close()
		return subscription{}
	}
	return subscription{watcher, watcher.Events, watcher.Errors}
}

// pollInterval is how long to rely on the doorbell alone.
func (s *subscription) pollInterval() time.Duration {
	if s.events == nil {
		return PollWithoutDoorbell
	}
	return PollWithDoorbell
}

func (s *subscription) close() {
	if s.watcher != nil {
		_ = s.watcher.Close()
	}
	*s = subscription{}
}

// makeDoorbell makes the folder and the file in it. A user who can write the ledger may write the doorbell.
func makeDoorbell(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	folder := path + doorbellFolder
	if err := setModeIfMade(os.Mkdir(folder, 0o700), folder, mode|mode&0o444>>2); err != nil {
		return err
	}
	for _, name := range []string{doorbellFile, endedFile} {
		file := filepath.Join(folder, name)
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = f.Close()
		}
		if err := setModeIfMade(err, file, mode); err != nil {
			return err
		}
	}
	return nil
}

// setModeIfMade sets the mode, regardless of the umask, of what was made without error; what existed keeps
// its mode.
func setModeIfMade(err error, name string, mode fs.FileMode) error {
	switch {
	case err == nil:
		return os.Chmod(name, mode)
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return err
}

// notifier touches the doorbells. It belongs to the commit loop.
type notifier struct{ claimable, ended doorbell }

func (n *notifier) ring(path string, topics engine.Topic) {
	if topics&engine.Claimable != 0 {
		n.claimable.ring(path, doorbellFile)
	}
	if topics&engine.Ended != 0 {
		n.ended.ring(path, endedFile)
	}
}

func (n *notifier) close() {
	n.claimable.close()
	n.ended.close()
}

// doorbell is one of the files.
type doorbell struct {
	file   *os.File // nil: no process has made a doorbell, or it cannot be opened
	opened time.Time
}

// ring touches the doorbell, if there is one. It is best effort: a lost ring only delays a wake-up.
func (d *doorbell) ring(path, name string) {
	if now := time.Now(); now.Sub(d.opened) > reopenAfter {
		d.close()
		d.file, _ = os.OpenFile(filepath.Join(path+doorbellFolder, name), os.O_WRONLY, 0)
		d.opened = now
	}
	if d.file != nil {
		_, _ = d.file.WriteAt([]byte{'\n'}, 0)
	}
}

func (d *doorbell) close() {
	if d.file != nil {
		_ = d.file.Close()
		d.file = nil
	}
}
