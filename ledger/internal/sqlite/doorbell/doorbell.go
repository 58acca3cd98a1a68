package doorbell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/ownerfile"
)

const (
	folderSuffix  = ".bell"     // appended to the ledger's own name
	claimableFile = "bell"      // touched after a commit that made a job claimable
	endedFile     = "ended"     // touched after a commit that ended the claim of another process
	inboxFile     = "inbox"     // touched before a commit that gives the inbox rows
	reopenAfter   = time.Second // then a Ringer opens a file again: it may be a new one
)

// Folder returns the name of the doorbell's folder for the ledger at path.
func Folder(path string) string { return path + folderSuffix }

// Make makes the folder and its files where they are missing. Users who can write the ledger at path can
// write the doorbell, and it is the ledger's owner's, even if root makes it.
func Make(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm()
	folder := Folder(path)
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := giveFolder(path, folder, mode|mode&0o444>>2); err != nil {
		return err
	}
	for _, name := range []string{claimableFile, endedFile, inboxFile} {
		f, err := OpenFile(path, name, os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// giveFolder shares the folder as the ledger at path is shared.
func giveFolder(path, folder string, mode fs.FileMode) error {
	f, err := os.OpenFile(folder, os.O_RDONLY|ownerfile.NoWait, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is not a folder", folder)
	}
	_ = ownerfile.ShareOf(path).Give(f, mode) // if that fails, other users do without
	return nil
}

// errNotPlain is the error of a file that no process of this program has made.
var errNotPlain = errors.New("not a plain file with one name")

// OpenFile opens a file of the doorbell of the ledger at path, and makes it with this mode if it is missing.
// It follows no link and waits for no pipe.
func OpenFile(path, name string, flags int, mode fs.FileMode) (*os.File, error) {
	name = filepath.Join(Folder(path), name)
	f, err := os.OpenFile(name, flags|ownerfile.NoWait, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.OpenFile(name, flags|os.O_CREATE|os.O_EXCL|ownerfile.NoWait, 0o600)
		if errors.Is(err, fs.ErrExist) { // another process was first
			f, err = os.OpenFile(name, flags|ownerfile.NoWait, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !ownerfile.Plain(info) {
		err = fmt.Errorf("%s is %w", name, errNotPlain)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	_ = ownerfile.ShareOf(path).Give(f, mode) // regardless of the umask; if that fails, other users do without
	return f, nil
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
	case inboxFile:
		return engine.Inbox
	}
	return engine.AnyTopic
}

// Ringer touches the doorbell of one ledger, after its commits. It is not safe for concurrent use.
type Ringer struct{ claimable, ended, inbox bell }

// Ring wakes those who wait for the topics.
func (r *Ringer) Ring(path string, topics engine.Topic) {
	if topics&engine.Claimable != 0 {
		r.claimable.ring(path, claimableFile)
	}
	if topics&engine.Ended != 0 {
		r.ended.ring(path, endedFile)
	}
	if topics&engine.Inbox != 0 {
		r.inbox.ring(path, inboxFile)
	}
}

// Close closes the files.
func (r *Ringer) Close() {
	r.claimable.close()
	r.ended.close()
	r.inbox.close()
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
		b.file = openBell(path, name)
		b.opened = now
	}
	if b.file != nil {
		_, _ = b.file.WriteAt([]byte{'\n'}, 0)
	}
}

// openBell opens one of the files; nil where there is none.
func openBell(path, name string) *os.File {
	f, err := os.OpenFile(filepath.Join(Folder(path), name), os.O_WRONLY|ownerfile.NoWait, 0)
	if err != nil {
		return nil
	}
	if info, err := f.Stat(); err != nil || !ownerfile.Plain(info) {
		_ = f.Close()
		return nil
	}
	return f
}

func (b *bell) close() {
	if b.file != nil {
		_ = b.file.Close()
		b.file = nil
	}
}
