package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/prefetch"
	"jobledger/projection"
	"jobledger/projection/audit"
)

// Reader answers questions about what has left a ledger: from a copy that is as if nothing had left, without
// payloads, results and salts. Making the copy costs the whole history. So it is kept, and each later
// question only adds the events that came since. Processes share it.
type Reader struct {
	Store *ledger.Store // the ledger
	Dir   string        // the folder of its archive
	Cache string        // the folder of the copies of all ledgers; "": the copy is removed when it is closed

	// Begin is called before events are added: for how many, and to the copy in which folder. nil: nothing is.
	Begin func(events int64, folder string)
}

const (
	readerFile = "reader.db"
	// readerKept is for how long a copy stays that no question was asked of.
	readerKept = 14 * 24 * time.Hour
	// sameTime is how exactly a file system may keep the time of a file.
	sameTime = 2 * time.Second
)

// readAtOnce is how many events one transaction adds: a kill loses no more. A variable for the tests only.
var readAtOnce int64 = 50_000

// errUnfit means that a copy does not fit this ledger as it is now, or was changed.
var errUnfit = errors.New("the copy does not fit the ledger")

// ReaderError is that the copy could not be made or moved forward, for a reason of its Folder.
type ReaderError struct {
	Folder string
	Err    error
}

// Error says which folder it is.
func (e *ReaderError) Error() string {
	return fmt.Sprintf("the archive cannot be read into %s: %v", e.Folder, e.Err)
}

// Unwrap returns Err.
func (e *ReaderError) Unwrap() error { return e.Err }

// Open opens the copy, which has then every event up to the last one now. It is made if there is none, and
// made again if it does not fit the ledger. Whatever stops it, the next Open goes on from there. The caller
// closes the Store; r.Store must stay open until then. Errors: ErrMissing and segment.ErrDamaged of the
// archive's files; a ReaderError.
func (r Reader) Open(ctx context.Context) (copied *ledger.Store, err error) {
	var tail int64
	var id string
	err = r.Store.Read(ctx, func(tx *ledger.Tx) error {
		if tail, err = tx.Tail(ctx); err == nil {
			id, err = projection.LedgerID(ctx, tx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	folder, err := r.folder(id)
	for tries := 0; err == nil; tries++ {
		seen, _ := os.Stat(filepath.Join(folder, readerFile))
		copied, err = r.open(ctx, folder, tail)
		if !errors.Is(err, errUnfit) || tries == 4 {
			break
		}
		err = removeReader(ctx, folder, seen)
	}
	if err != nil && r.Cache == "" {
		_ = os.RemoveAll(folder)
	}
	_, ofPath := errors.AsType[*fs.PathError](err)
	if ofPath && !errors.Is(err, ErrMissing) || errors.Is(err, ledger.ErrFull) || errors.Is(err, ledger.ErrIO) ||
		errors.Is(err, ledger.ErrReadOnly) {
		err = &ReaderError{folder, err}
	}
	return copied, err
}

// folder returns the folder of the copy of the ledger with this id, and makes it if needed.
func (r Reader) folder(id string) (string, error) {
	if r.Cache == "" {
		return os.MkdirTemp("", "jobledger-whole-")
	}
	removeUnused(r.Cache)
	folder := filepath.Join(r.Cache, fmt.Sprintf("%s-%d", id, r.Store.SchemaVersion()))
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		now := time.Now()
		err = os.Chtimes(folder, now, now)
	}
	return folder, err
}

// open opens the copy in folder and moves it forward to the event tail.
func (r Reader) open(ctx context.Context, folder string, tail int64) (*ledger.Store, error) {
	path := filepath.Join(folder, readerFile)
	before, statErr := closedFile(ctx, path)
	if statErr == nil && sidecar(path) { // a process has it open, or was killed
		before = nil
	}
	s, err := ledger.Open(ctx, "sqlite:"+path+"?sync=normal")
	switch {
	case errors.Is(err, ledger.ErrDamaged), errors.Is(err, ledger.ErrNotALedger),
		errors.Is(err, ledger.ErrNewerSchema), errors.Is(err, ledger.ErrForeignSidecar):
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	case err != nil:
		return nil, err
	}
	s.Whole = true
	if statErr != nil {
		err = os.Chmod(path, 0o600)
	}
	var at int64
	if err == nil {
		at, err = r.fits(ctx, s, before)
	}
	sound := err == nil
	if sound && at < tail {
		err = r.forward(ctx, s, at, tail, folder)
		sound = !errors.Is(err, errUnfit)
	}
	var began time.Time // of the ledger
	if sound {          // also if it was stopped on its way
		ctx := context.WithoutCancel(ctx)
		timeErr := s.Read(ctx, func(tx *ledger.Tx) (err error) {
			began, err = timeOfFirst(ctx, tx)
			return err
		})
		err = cmp.Or(err, timeErr)
	}
	s.Of = r.Store
	s.Closed = func() {
		switch {
		case r.Cache == "":
			_ = os.RemoveAll(folder)
		case !began.IsZero() && !sidecar(path): // none has it open: this time says that nothing was changed since
			_ = os.Chtimes(path, began, began)
		}
	}
	if err != nil {
		_ = s.Close() // the error is why
		return nil, err
	}
	return s, nil
}

// closedFile returns what the system says of the file at path. Right after a change, it first waits until the
// process that closed the file has set its time, which can take long on a busy machine. That time is of an
// event, and so of whole microseconds.
func closedFile(ctx context.Context, path string) (info fs.FileInfo, err error) {
	for range 100 {
		info, err = os.Stat(path)
		if err != nil || time.Since(info.ModTime()) >= sameTime || info.ModTime().Nanosecond()%1000 == 0 ||
			sidecar(path) {
			break
		}
		select {
		case <-ctx.Done():
			return info, err
		case <-time.After(20 * time.Millisecond):
		}
	}
	return info, err
}

// sidecar reports whether a file is open, or was when its process was killed.
func sidecar(path string) bool {
	_, err := os.Stat(path + "-wal")
	return err == nil
}

// timeOfFirst is the time of the first event, which is that of the copy's file too while it is not open.
func timeOfFirst(ctx context.Context, tx *ledger.Tx) (time.Time, error) {
	first, _, err := tx.EventAt(ctx, 1)
	return first.At, err
}

// forward adds the events after at, up to tail, to s.
func (r Reader) forward(ctx context.Context, s *ledger.Store, at, tail int64, folder string) (err error) {
	if r.Begin != nil {
		r.Begin(tail-at, folder)
	}
	for goesOn := at > 0; err == nil && at < tail; {
		err = s.WriteRepair(ctx, func(tx *ledger.Tx) error { at, err = r.add(ctx, tx, tail); return err })
		if goesOn && (errors.Is(err, projection.ErrIllegal) || errors.Is(err, ledger.ErrDamaged)) {
			err = errUnfit // the copy or the ledger is wrong: one that is made says which
		}
	}
	return err
}

// add adds the next events, up to tail, and returns the last one.
func (r Reader) add(ctx context.Context, tx *ledger.Tx, tail int64) (at int64, err error) {
	if at, err = tx.Tail(ctx); err != nil || at >= tail { // another process added them
		return at, err
	}
	if at == 0 {
		if err := tx.DropGuards(ctx); err != nil {
			return 0, err
		}
	}
	loader, err := audit.Resume(ctx, tx)
	if err != nil {
		return at, err
	}
	next := ledger.Filter{After: at, Until: min(tail, at+readAtOnce)}
	for line, err := range prefetch.Lines(Lines(ctx, r.Store, r.Dir, next)) {
		if err == nil {
			err = loader.Add(ctx, line)
		}
		if err != nil {
			return at, err
		}
	}
	if err = loader.End(ctx); err == nil {
		err = loader.Save()
	}
	if err == nil && next.Until == tail {
		_, err = tx.RepairSchema(ctx)
	}
	return next.Until, err
}

// fits returns the last event of s; errUnfit if that is not an event of the ledger, or if s was changed since
// its file was closed, of which before is what the system says; nil: that says nothing.
func (r Reader) fits(ctx context.Context, s *ledger.Store, before fs.FileInfo) (at int64, err error) {
	var last event.Event
	var began time.Time
	err = s.Read(ctx, func(tx *ledger.Tx) error {
		if at, err = tx.Tail(ctx); err == nil && at > 0 {
			last, _, err = tx.EventAt(ctx, at)
		}
		if err == nil {
			began, err = timeOfFirst(ctx, tx)
		}
		return err
	})
	changed := at > 0 && before != nil && before.ModTime().Sub(began).Abs() > sameTime
	switch {
	case errors.Is(err, ledger.ErrDamaged), err == nil && changed:
		return 0, errUnfit
	case err != nil || at == 0:
		return 0, err
	}
	for line, err := range Lines(ctx, r.Store, r.Dir, ledger.Filter{After: at - 1, Until: at}) {
		if err == nil && !bytes.Equal(line.Event.AppendLeaf(nil), last.AppendLeaf(nil)) {
			err = errUnfit
		}
		return at, err
	}
	return 0, errUnfit
}

// removeReader removes the copy in a folder, unless a process has it open, or had since it was seen.
func removeReader(ctx context.Context, folder string, seen fs.FileInfo) error {
	path := filepath.Join(folder, readerFile)
	lock, err := ledger.LockExclusive(ctx, path, true)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ledger.ErrBusy):
		return nil
	case err != nil:
		return err
	}
	defer lock.Release()
	now, err := os.Stat(path)
	if err != nil || seen == nil || now.Size() != seen.Size() || !now.ModTime().Equal(seen.ModTime()) {
		return err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeUnused removes the copies that no question was asked of for long.
func removeUnused(cache string) {
	found, _ := os.ReadDir(cache) // none: it is made now
	for _, f := range found {
		info, err := f.Info()
		if err != nil || !f.IsDir() || time.Since(info.ModTime()) < readerKept {
			continue
		}
		folder := filepath.Join(cache, f.Name())
		seen, err := os.Stat(filepath.Join(folder, readerFile))
		if err != nil {
			continue // it is something else
		}
		_ = removeReader(context.Background(), folder, seen) // another question tries it again
		if _, err := os.Stat(filepath.Join(folder, readerFile)); err != nil {
			_ = os.RemoveAll(folder) // what a writer leaves next to a ledger
		}
	}
}
