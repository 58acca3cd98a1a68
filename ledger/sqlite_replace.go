package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"jobledger/ledger/failpoint"
)

// Putting another ledger in the place of one. SQLite finds the files beside a ledger by its name, so nobody may have
// the old one open while its name is given to another: two processes, each with a ledger of its own, would write into
// one -wal file. Every connection in WAL mode holds a lock on the file for as long as it is open, so that nobody does
// can be found out, and kept so.

const (
	seizeWait = 2 * time.Second        // for those who come and go; who stays on is not waited for
	passAway  = 300 * time.Millisecond // how long the old file stays locked once its name is gone: whoever has opened it by that name and not yet asked for the lock is refused, and opens the new one
)

// Seized is a ledger's file that nobody else can use. Release it.
type Seized struct {
	path string   // without links
	lock *os.File // nil where there is no such lock
	torn bool     // its -wal file is still needed beside it
}

// Seize makes sure that nobody has the ledger at path open, in this process or another, and keeps it so. The file then
// holds all that was committed, by itself. damaged is for a file that SQLite cannot be asked to bring into that state.
// Errors: ErrBusy when somebody has it open.
func Seize(ctx context.Context, path string, damaged bool) (*Seized, error) {
	lockByDescription()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	s := &Seized{path: path, torn: damaged}
	for start := time.Now(); ; {
		err := s.seize(ctx)
		switch inUse := isBusy(err) || errors.Is(err, ErrReplaced); {
		case err == nil:
			failpoint.Hit("seized")
			return s, nil
		case !inUse:
			return nil, fmt.Errorf("seize %s: %w", path, explain(err))
		case time.Since(start) > seizeWait:
			return nil, fmt.Errorf("%w: somebody has %s open", ErrBusy, path)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

var errInUse = errors.New("ledger: in use")

// The bytes of a file on which SQLite takes its locks: pending, reserved, and the range of the readers. The one behind
// them is for those who have yet to ask SQLite for a lock: see keepName.
const (
	lockStart  = 0x40000000
	lockLength = 2 + 510
	nameLock   = lockStart + lockLength
)

// seize is one attempt.
func (s *Seized) seize(ctx context.Context) (err error) {
	if !s.torn {
		if err := settle(ctx, s.path); err != nil {
			return err
		}
		failpoint.Hit("settled")
	}
	if canLockWhole {
		if s.lock, err = os.OpenFile(s.path, os.O_RDWR, 0); err != nil {
			return err
		}
		failpoint.Hit("found")
	}
	if err := s.lockWhole(); err != nil {
		s.Release()
		return err
	}
	if s.torn {
		return nil
	}
	wal, err := walOf(s.path) // somebody was there in between, and was killed
	switch {
	case err == nil && wal != nil:
		err = errInUse
	case err == nil && canLockWhole:
		_ = os.Remove(s.path + "-shm") // of one who was killed
	}
	if err != nil {
		s.Release()
	}
	return err
}

// settle moves what the -wal file holds into the ledger's file and removes the former. SQLite does so only for the last
// one that has it open, but never asks whose -wal file it is: by its name, a connection to a file that was just
// exchanged gets that of the new one. So the first read takes a lock that is kept, without which nobody can exchange
// the file, and makes no use of the -shm file.
func settle(ctx context.Context, path string) error {
	f := &file{path: path}
	var err error
	if f.info, err = os.Stat(path); err != nil { // before it is opened
		return err
	}
	c, err := connectSQLite(ctx, fileURL(path, url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(0)", "locking_mode(exclusive)"}}))
	if err != nil {
		return err
	}
	defer c.close()
	failpoint.Hit("settling")
	var version int
	err = c.conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
	if err = f.unlessMoved(err); err != nil {
		return err
	}
	var mode string
	if err := c.conn.QueryRowContext(ctx, `PRAGMA synchronous = full; PRAGMA journal_mode = delete`).Scan(&mode); err != nil {
		return err
	}
	if mode != "delete" {
		return fmt.Errorf("ledger: %s stays in the mode %s", path, mode)
	}
	return c.close()
}

// lockWhole keeps everybody else out. ErrReplaced if the file has lost its name; once it is locked, nobody else can
// take that from it.
func (s *Seized) lockWhole() error {
	if s.lock == nil {
		return nil
	}
	if err := lockWhole(s.lock); err != nil {
		return err
	}
	info, err := s.lock.Stat()
	if err != nil {
		return err
	}
	return (&file{path: s.path, info: info}).same()
}

// Replace gives the ledger's name to the one at fresh, in the same folder, which must be whole, closed and durable. The
// old one is kept under the name kept, which must be free: fs.ErrExist if it is not. Whenever this is cut off, one of
// the two stands at the ledger's name, whole.
func (s *Seized) Replace(fresh, kept string) error {
	folder := filepath.Dir(s.path)
	if err := s.lockWhole(); err != nil { // there are systems that drop it when the file is closed after a look
		return fmt.Errorf("%w: somebody has opened %s", ErrBusy, s.path)
	}
	if err := os.Link(s.path, kept); err != nil {
		return fmt.Errorf("keep the old ledger: %w", err)
	}
	failpoint.Hit("kept")
	if err := SyncFolder(folder); err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-journal", "-shm"} {
		err := os.Rename(s.path+suffix, kept+suffix) // or the fresh one would take it for its own
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
	time.Sleep(passAway)
	return nil
}

// Release lets others use the file again.
func (s *Seized) Release() {
	if s.lock != nil {
		_ = s.lock.Close()
		s.lock = nil
	}
}

// Copy writes a compacted, consistent copy of the ledger at from, which others may use, to the file at to, which must
// not exist or be empty. Like Store.Vacuum it does not make the copy durable. It changes nothing at from.
func Copy(ctx context.Context, from, to string) error {
	path, err := lookable(ctx, from)
	if err != nil {
		return err
	}
	if to, err = filepath.Abs(to); err != nil {
		return err
	}
	if err := checkStray(ctx, path); err != nil {
		return err
	}
	wal, err := walOf(path)
	if err != nil {
		return err
	}
	source := vacuumURL(path)
	if wal == nil {
		source = immutableURL(path) // or SQLite would make files beside it
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, to)
	return explain(err)
}

// SyncFolder makes the names in a folder durable, where the system can.
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
