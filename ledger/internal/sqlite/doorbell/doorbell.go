package doorbell

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"jobledger/ledger/internal/engine"
)

const (
	folderSuffix  = ".bell"     // appended to the ledger's own name
	claimableFile = "bell"      // touched after a commit that made a job claimable
	endedFile     = "ended"     // touched after a commit that ended the claim of another process
	reopenAfter   = time.Second // then a Ringer opens a file again: it may be a new one
)

// Folder returns the name of the doorbell's folder for the ledger at path.
func Folder(path string) string { return path + folderSuffix }

// Make makes the folder and its files where they are missing. Users who can write the ledger at path can
// write the doorbell.
func Make(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	folder := Folder(path)
	if err := setModeIfMade(os.Mkdir(folder, 0o700), folder, mode|mode&0o444>>2); err != nil {
		return err
	}
	for _, name := range []string{claimableFile, endedFile} {
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

// Subscription is a watched doorbell; the zero Subscription never reports anything.
type Subscription struct {
	Events <-chan fsnotify.Event // each names a file; see [TopicOf]
	Errors <-chan error

	watcher *fsnotify.Watcher
}

// Watch makes the doorbell and watches it. It returns the zero Subscription where the system refuses that.
func Watch(path string) Subscription {
	if Make(path) != nil {
		return Subscription{}
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return Subscription{}
	}
	if err := watcher.Add(Folder(path)); err != nil {
		_ = watcher.Close()
		return Subscription{}
	}
	return Subscription{watcher.Events, watcher.Errors, watcher}
}

// Close ends the subscription; it may be called more than once.
func (s *Subscription) Close() {
	if s.watcher != nil {
		_ = s.watcher.Close()
	}
	*s = Subscription{}
}

// TopicOf returns the topic of a doorbell file.
func TopicOf(name string) engine.Topic {
	switch filepath.Base(name) {
	case claimableFile:
		return engine.Claimable
	case endedFile:
		return engine.Ended
	}
	return engine.AnyTopic
}

// Ringer touches the doorbell of one ledger, after its commits. It is not safe for concurrent use.
type Ringer struct{ claimable, ended bell }

// Ring wakes those who wait for the topics.
func (r *Ringer) Ring(path string, topics engine.Topic) {
	if topics&engine.Claimable != 0 {
		r.claimable.ring(path, claimableFile)
	}
	if topics&engine.Ended != 0 {
		r.ended.ring(path, endedFile)
	}
}

// Close closes the files.
func (r *Ringer) Close() {
	r.claimable.close()
	r.ended.close()
}

// bell is one of the files.
type bell struct {
	file   *os.File // nil: no process has made a doorbell, or it cannot be opened
	opened time.Time
}

// ring touches the file, if there is one. It is best effort: a lost ring only delays a wake-up.
func (b *bell) ring(path, name string) {
	if now := time.Now(); now.Sub(b.opened) > reopenAfter {
		b.close()
		b.file, _ = os.OpenFile(filepath.Join(Folder(path), name), os.O_WRONLY, 0)
		b.opened = now
	}
	if b.file != nil {
		_, _ = b.file.WriteAt([]byte{'\n'}, 0)
	}
}

func (b *bell) close() {
	if b.file != nil {
		_ = b.file.Close()
		b.file = nil
	}
}
