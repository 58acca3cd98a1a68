package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/sqlite/place"
)

// Replacing a ledger's file. SQLite finds the sidecar files of a ledger by its name, so no process may have
// the old file open while its name passes to another: two processes with different ledgers would write into
// one -wal file. Every connection in WAL mode holds a lock on the file while it is open, so an exclusive lock
// proves that there is none, and keeps new ones out.

const (
	exclusiveWait = 2 * time.Second // for processes that have the ledger open for a short time
	// renameGrace is how long the old file stays locked after its name has passed to the new one. A process that
	// has opened it by that name and not asked for SQLite's lock yet is refused, and opens the new one.
	renameGrace = 300 * time.Millisecond
)

// ExclusiveLock is a lock on a ledger's file that keeps all other users out. Release it.
type ExclusiveLock struct {
	path    string   // without links
	lock    *os.File // nil where there is no such lock
	damaged bool     // the -wal file was not moved into the file and is still needed
}

// LockExclusive locks the ledger at path, so that it is not open anywhere, in this process or another, and
// cannot be opened. The file then holds everything that was committed, without a -wal file. damaged is for a
// file that SQLite cannot bring into that state. Errors: ErrBusy when the ledger is open; ErrSecondName.
func LockExclusive(ctx context.Context, path string, damaged bool) (*ExclusiveLock, error) {
	lockByDescription()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if err := place.CheckNames(path); err != nil {
		return nil, err
	}
	s := &ExclusiveLock{path: path, damaged: damaged}
	for start := time.Now(); ; {
		err := s.try(ctx)
		switch inUse := isBusy(err) || errors.Is(err, engine.ErrReplaced); {
		case err == nil:
			failpoint.Hit("locked")
			return s, nil
		case !inUse:
			return nil, fmt.Errorf("lock %s: %w", path, explain(err))
		case time.Since(start) > exclusiveWait:
			return nil, fmt.Errorf("%w: another user has %s open", engine.ErrBusy, path)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

var errInUse = errors.New("ledger: in use")

// The bytes of a file on which SQLite takes its locks: pending, reserved, and the range of the readers. The
// byte after them is for processes that have not asked SQLite for a lock yet: see pinName.
const (
	lockStart  = 0x40000000
	lockLength = 2 + 510
	pinByte    = lockStart + lockLength
)

// try is one attempt.
func (s *ExclusiveLock) try(ctx context.Context) (err error) {
	if !s.damaged {
		if err := foldWAL(ctx, s.path); err != nil {
			return err
		}
		failpoint.Hit("drained")
	}
	if canLockFile {
		if s.lock, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
			return err
		}
		failpoint.Hit("found")
	}
	if err := s.lockAll(); err != nil {
		s.Release()
		return err
	}
	if s.damaged {
		return nil
	}
	wal, err := walOf(s.path) // of a process that opened it in between and was killed
	switch {
	case err == nil && wal != nil:
		err = errInUse
	case err == nil && canLockFile:
		_ = os.Remove(s.path + "-shm") // of a process that was killed
	}
	if err != nil {
		s.Release()
	}
	return err
}

// foldWAL moves the content of the -wal file into the ledger's file and removes the -wal file. SQLite does so
// for the last connection only, but finds the -wal file by its name: a connection to a file that was just
// replaced gets that of the new one. So the first read takes a lock and keeps it, which prevents a
// replacement, and does without the -shm file.
func foldWAL(ctx context.Context, path string) error {
	f := &Engine{path: path}
	var err error
	if f.opened, err = os.Stat(path); err != nil { // before it is opened
		return err
	}
	settings := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(0)", "locking_mode(exclusive)"}}
	c, err := open(ctx, fileURL(path, settings))
	if err != nil {
		return err
	}
	defer c.Close()
	failpoint.Hit("draining")
	var version int
	err = c.conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	if err = f.replacedOr(err); err != nil {
		return err
	}
	var mode string
	const endWAL = `PRAGMA synchronous = full; PRAGMA journal_mode = delete`
	if err := c.conn.QueryRowContext(ctx, endWAL).Scan(&mode); err != nil {
		return err
	}
	if mode != "delete" {
		return fmt.Errorf("ledger: %s stays in the mode %s", path, mode)
	}
	return c.Close()
}

// lockAll keeps all other users out. ErrReplaced if the file has lost its name, which cannot happen any more
// once it is locked.
func (s *ExclusiveLock) lockAll() error {
	if s.lock == nil {
		return nil
	}
	if err := lockFile(s.lock); err != nil {
		return err
	}
	info, err := s.lock.Stat()
	if err != nil {
		return err
	}
	return (&Engine{path: s.path, opened: info}).CheckReplaced()
}

// Replace gives the ledger's name to the file fresh in the same folder, which must be complete, closed and
// durable. The old file gets the name kept; fs.ErrExist if that is taken. After a crash at any moment one of
// the two has the ledger's name, and is complete.
func (s *ExclusiveLock) Replace(fresh, kept string) error {
	folder := filepath.Dir(s.path)
	if err := s.lockAll(); err != nil { // some systems drop it when another descriptor is closed
		return fmt.Errorf("%w: another user has opened %s", engine.ErrBusy, s.path)
	}
	if err := os.Link(s.path, kept); err != nil {
		return fmt.Errorf("keep the old ledger: %w", err)
	}
	failpoint.Hit("kept")
	if err := SyncFolder(folder); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-journal", "-shm"} {
		err := os.Rename(s.path+suffix, kept+suffix) // or SQLite would use it for the fresh one
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("keep the old ledger: %w", err)
		}
	}
	failpoint.Hit("cleared")
	if err := os.Rename(fresh, s.path); err != nil {
		return err
	}
	failpoint.Hit("replaced")
	if err := SyncFolder(folder); err != nil {
		return err
	}
	time.Sleep(renameGrace)
	return nil
}

// Release ends the lock.
func (s *ExclusiveLock) Release() {
	if s.lock != nil {
		_ = s.lock.Close()
		s.lock = nil
	}
}

// SyncFolder makes the names in a folder durable, where the system can do that.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return nil // a folder that may be written but not read
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
