package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/sqlite/place"
	"jobledger/schema"
)

// Reading a ledger that this process may not write, or must not. SQLite needs the -shm file for reading too,
// and makes it next to the ledger. The first of three ways that works is taken:
//
//   - without a -wal file the ledger is read as a file that does not change (immutable). Whether it did is
//     looked at when a snapshot begins and when it ends.
//   - with a -wal and a -shm file, which another process has made, SQLite reads with its locks.
//   - with a -wal file alone, as a copy on a read-only disk may have it, both are copied to a temporary
//     folder. A file with an older schema is copied too, and the copy is brought up to date.

// reading is an Engine without a writer.
type reading struct {
	*Engine
	real string // the path without links
	temp string // the folder with the copy that is read; "": it is the ledger itself

	mu      sync.Mutex
	without map[*engine.Session]fileState // the sessions without locks, and what they have read
}

// fileState changes when a process writes to a ledger.
type fileState struct {
	size, walSize int64
	at, walAt     time.Time
}

func stateOf(path string) (s fileState) {
	if info, err := os.Stat(path); err == nil {
		s.size, s.at = info.Size(), info.ModTime()
	}
	if info, err := os.Stat(path + "-wal"); err == nil {
		s.walSize, s.walAt = info.Size(), info.ModTime()
	}
	return s
}

// onlyRead returns why a ledger that could not be opened because of err may only be read; nil if it may not
// be read either.
func onlyRead(path string, err error) error {
	switch {
	case errors.Is(err, engine.ErrSecondName), errors.Is(err, engine.ErrReadOnly):
		return err
	case !errors.Is(err, fs.ErrPermission) && !errors.Is(err, engine.ErrIO):
		return nil
	}
	if missing := denied(place.RealPath(path)); missing != nil && mayRead(path) {
		return fmt.Errorf("%w: %w", engine.ErrReadOnly, missing) // which does not pass, as an ErrIO may
	}
	return nil
}

// openReading opens the ledger at path for reading. why says why not for writing.
func openReading(ctx context.Context, path string, o options, why error) (_ engine.Engine, err error) {
	real, err := inspectableAt(ctx, path, o)
	if err == nil {
		err = checkOwnSidecars(ctx, real)
	}
	if err != nil {
		return nil, err
	}
	r := &reading{real: real, without: make(map[*engine.Session]fileState), Engine: &Engine{path: path,
		info: engine.Info{Path: path, Sync: o.sync, ReadOnly: why}}}
	if r.opened, err = os.Stat(path); err != nil {
		return nil, err
	}
	version, err := r.check(ctx)
	steps, stepsErr := schema.SQLite()
	switch {
	case stepsErr != nil:
		return nil, stepsErr
	case err == nil && version == len(steps):
		r.info.SchemaVersion = version
		r.info.Note = r.note()
		return r, nil
	case err == nil:
		return r.openCopy(ctx, o, func(to string) error { return Copy(ctx, real, to) })
	case unwritable(err):
		if wal, walErr := walOf(real); walErr == nil && wal != nil {
			return r.openCopy(ctx, o, func(to string) error { return copyWithWAL(real, to) })
		}
	}
	return nil, withCause(real, err)
}

// check reads the schema of the ledger, and compares its objects with what they should be.
func (r *reading) check(ctx context.Context) (version int, err error) {
	s, err := r.OpenReader(ctx)
	if err != nil {
		return 0, err
	}
	defer r.forget(s)
	at, err := s.Int(ctx, `PRAGMA user_version`)
	if err != nil {
		return 0, err
	}
	version = int(at)
	if err := checkVersion(r.path, version); err != nil {
		return 0, err
	}
	diff, err := schemaDiff(ctx, s, version)
	r.info.Altered = engine.Altered(diff)
	return version, err
}

// note says what a reader should know.
func (r *reading) note() string {
	wal, err := walOf(r.real)
	names := place.NamesOf(r.real)
	switch {
	case errors.Is(r.info.ReadOnly, engine.ErrSecondName) && names.Mounted:
		return fmt.Sprintf("%s is mounted without its folder, and only read: what is not yet in the file itself "+
			"is missing", r.path)
	case errors.Is(r.info.ReadOnly, engine.ErrSecondName):
		return fmt.Sprintf("%s has %d names (hard links), and is only read: what processes have written at the "+
			"other one may be missing", r.path, names.Links)
	case err == nil && wal == nil:
		return fmt.Sprintf("%s is read without locks, because nothing can be written next to it", r.path)
	}
	return ""
}

// openCopy opens a copy of the ledger, in a temporary folder, and brings it up to date.
func (r *reading) openCopy(ctx context.Context, o options, copyTo func(to string) error) (
	_ engine.Engine, err error) {
	if r.temp, err = os.MkdirTemp("", "jobledger-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(r.temp)
		}
	}()
	before := stateOf(r.real)
	if err := checkRoom(r.temp, r.real); err != nil {
		return nil, fmt.Errorf("%w; there is no room for a copy in %s: copy %s and %[3]s-wal to a place where you "+
			"may write, and use that", r.info.ReadOnly, os.TempDir(), r.path)
	}
	to := filepath.Join(r.temp, "ledger.db")
	if err := copyTo(to); err != nil {
		return nil, fmt.Errorf("%w; copy %s and %[2]s-wal to a place where you may write, and use that: %w",
			r.info.ReadOnly, r.path, err)
	}
	if stateOf(r.real) != before {
		return nil, fmt.Errorf("%w: %s was written while it was copied", engine.ErrBusy, r.path)
	}
	o.names, o.network = true, true
	copied, err := openAt(ctx, to, o, false)
	if err != nil {
		return nil, fmt.Errorf("read a copy of %s: %w", r.path, err)
	}
	info := r.info
	info.SchemaVersion, info.Altered = copied.info.SchemaVersion, copied.info.Altered
	info.Note = fmt.Sprintf("%s is read in a copy, as of now, because it can only be read", r.path)
	copied.info = info
	r.Engine, r.real = copied, to
	return r, nil
}

// checkRoom returns ErrFull where there is no room in a folder for a copy of the ledger at path.
func checkRoom(folder, path string) error {
	s := stateOf(path)
	if disk := place.FileSystemOf(folder); disk.Known && disk.Free < uint64(2*(s.size+s.walSize)) {
		return engine.ErrFull
	}
	return nil
}

// copyWithWAL copies a file that no process writes, and its -wal file. If a process of this host has the
// ledger open, there is a -shm file, and SQLite can read it. So closing the file here drops no locks.
func copyWithWAL(from, to string) error {
	for _, suffix := range []string{"", "-wal"} {
		if err := copyFile(from+suffix, to+suffix); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = target.ReadFrom(source)
	return cmp.Or(err, target.Close())
}

// Begin returns why there is no writer.
func (r *reading) Begin(context.Context, engine.BeginOptions) (*engine.Session, engine.Head, error) {
	return nil, engine.Head{}, r.info.ReadOnly
}

// Commit returns why there is no writer.
func (r *reading) Commit(engine.Topic) error { return r.info.ReadOnly }

// Rollback does nothing.
func (r *reading) Rollback() error { return nil }

// OpenReader implements engine.Engine.
func (r *reading) OpenReader(ctx context.Context) (*engine.Session, error) {
	if r.temp != "" {
		return r.Engine.OpenReader(ctx)
	}
	before := stateOf(r.real)
	if before.walSize > 0 {
		s, err := connect(ctx, readerURL(r.real))
		return s, explain(err)
	}
	s, err := connect(ctx, stillURL(r.real))
	if err == nil {
		r.mu.Lock()
		r.without[s] = before
		r.mu.Unlock()
	}
	return s, explain(err)
}

// BeginSnapshot implements engine.Engine. A session without locks is of no use once the file was written.
func (r *reading) BeginSnapshot(ctx context.Context, s *engine.Session) (engine.Head, error) {
	if err := r.Still(s); err != nil {
		r.mu.Lock()
		delete(r.without, s)
		r.mu.Unlock()
		return engine.Head{}, fmt.Errorf("%w: %w", engine.ErrIO, err) // another session is opened
	}
	return r.Engine.BeginSnapshot(ctx, s)
}

// Still implements engine.Stiller.
func (r *reading) Still(s *engine.Session) error {
	r.mu.Lock()
	before, without := r.without[s]
	r.mu.Unlock()
	if without && stateOf(r.real) != before {
		return fmt.Errorf("%w: %s was written while it was read without locks", engine.ErrBusy, r.path)
	}
	return nil
}

// forget closes a session.
func (r *reading) forget(s *engine.Session) {
	r.mu.Lock()
	delete(r.without, s)
	r.mu.Unlock()
	_ = s.Close()
}

// Vacuum implements engine.Engine.
func (r *reading) Vacuum(ctx context.Context, path string) (tail int64, err error) {
	if r.temp == "" && stateOf(r.real).walSize == 0 {
		return r.vacuumFrom(ctx, immutableURL(r.real), path)
	}
	return r.Engine.Vacuum(ctx, path)
}

// Checkpoint, TrimWAL and MoveWAL have nothing to do.

// Checkpoint implements engine.Engine.
func (r *reading) Checkpoint(context.Context) (bool, error) { return false, r.info.ReadOnly }

// TrimWAL implements engine.Engine.
func (r *reading) TrimWAL(context.Context) (bool, error) { return false, nil }

// MoveWAL implements engine.Engine.
func (r *reading) MoveWAL(context.Context) error { return nil }

// Notify does nothing.
func (r *reading) Notify(engine.Topic) {}

// Listen implements engine.Engine. It looks at the files.
func (r *reading) Listen(ctx context.Context, wake func(engine.Topic)) {
	wake(engine.AnyTopic)
	tick := time.NewTicker(PollWithDoorbell)
	defer tick.Stop()
	for before := stateOf(r.real); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if now := stateOf(r.real); now != before {
				before = now
				wake(engine.AnyTopic)
			}
		}
	}
}

// Late returns false: there are no commits.
func (r *reading) Late() bool { return false }

// Close implements engine.Engine.
func (r *reading) Close() error {
	if r.temp == "" {
		return nil
	}
	return cmp.Or(r.Engine.Close(), os.RemoveAll(r.temp))
}
