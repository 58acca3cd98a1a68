// Package walsync makes commits to an SQLite file in WAL mode durable after SQLite's write lock is free.
//
// SQLite syncs a commit while it holds the write lock, so on a disk whose syncs take 5 ms all processes of
// a ledger make 200 commits a second. A writer with late syncs commits with synchronous=NORMAL, which does
// not sync, and gives the lock back; [File.Sync] then makes durable what has been committed by whatever
// process. A power cut loses the end of the -wal file, which was not acknowledged.
//
// The -wal file is written from its beginning again only after a checkpoint, which syncs the -wal file
// before it and the database after it. So one sync of the -wal file covers all frames written to it before.
//
// An error of a sync is reported once, and a later sync succeeds without what was lost. So after such an
// error nothing is durable until [File.Rewrite] has written the file again. SQLite ignores errors of the
// checkpoints that it makes after a commit, so these are made through [File.Checkpoint].
//
// Held by TestLateSyncLeavesWriteLock, TestLateSyncReaderShowsWhatIsDurable and
// TestIOErrorLosesNothingAcknowledged of package ledger/ledgertest/faultvfs.
package walsync

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/ledger/internal/engine"
)

// File is the -wal file of a connection in WAL mode, as SQLite has it open.
type File struct {
	file  uintptr // SQLite's struct of the -wal file
	index uintptr // the first page of the index of the -wal file, which is shared memory

	synced atomic.Pointer[walHead] // what the last sync made durable
	failed atomic.Pointer[error]   // why a sync failed, until Rewrite has worked

	begun atomic.Int64 // how many syncs have begun
	mu    sync.Mutex   // held while the -wal file is synced
	tls   *libc.TLS
}

// walHead identifies the state of a -wal file: the header of its index, with a number that each commit
// changes, and a checksum.
type walHead [12]uint32

const (
	headFrames    = 4  // where the number of frames is in a walHead
	headPageSize  = 3  // where the size of a page is, in the last two bytes
	indexBackfill = 24 // where the number of frames that are in the database follows the two copies of the head
)

// The types of SQLite's functions for files.
type (
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
	transferFunc = func(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32
	shmMapFunc   = func(tls *libc.TLS, file uintptr, page, size, extend int32, result uintptr) int32
)

// at returns the value at an address in SQLite's memory, which is unknown to the garbage collector.
func at[T any](address uintptr) *T {
	return *(**T)(unsafe.Pointer(&address)) // #nosec G103 -- there is no other way to SQLite's memory
}

// function returns a function of a table of SQLite's.
func function[F any](address uintptr) F {
	return *(*F)(unsafe.Pointer(&address)) // #nosec G103 -- as SQLite's translation does it
}

func methods(file uintptr) *sqlite3.Tsqlite3_io_methods {
	return at[sqlite3.Tsqlite3_io_methods](at[sqlite3.Tsqlite3_file](file).FpMethods)
}

// New returns the -wal file of a connection of the driver that has read in WAL mode; nil where it cannot be
// reached.
func New(conn any) *File {
	field := reflect.Indirect(reflect.ValueOf(conn)).FieldByName("db")
	if field.Kind() != reflect.Uintptr || field.Uint() == 0 {
		return nil
	}
	db := uintptr(field.Uint())
	f := &File{tls: libc.NewTLS()}
	f.synced.Store(&walHead{})
	main, err := libc.CString("main")
	if err != nil {
		return nil
	}
	defer libc.Xfree(f.tls, main)
	result := libc.Xcalloc(f.tls, 1, 8)
	defer libc.Xfree(f.tls, result)
	if sqlite3.Xsqlite3_file_control(f.tls, db, main, sqlite3.SQLITE_FCNTL_JOURNAL_POINTER, result) != 0 {
		return nil
	}
	f.file = *at[uintptr](result)
	if f.file == 0 || at[sqlite3.Tsqlite3_file](f.file).FpMethods == 0 ||
		sqlite3.Xsqlite3_file_control(f.tls, db, main, sqlite3.SQLITE_FCNTL_FILE_POINTER, result) != 0 {
		return nil
	}
	file := *at[uintptr](result)
	if file == 0 || methods(file).FiVersion < 2 {
		return nil
	}
	*at[uintptr](result) = 0
	if function[shmMapFunc](methods(file).FxShmMap)(f.tls, file, 0, 32<<10, 0, result) != 0 {
		return nil
	}
	if f.index = *at[uintptr](result); f.index == 0 {
		return nil
	}
	return f
}

// Close frees what New took. It is called before the connection is closed.
func (f *File) Close() { f.tls.Close() }

// head returns the state of the -wal file; ok is false while a commit changes it.
func (f *File) head() (h walHead, ok bool) {
	copies := at[[24]uint32](f.index)
	for i := range copies {
		if value := atomic.LoadUint32(&copies[i]); i < len(h) {
			h[i] = value
		} else if h[i-len(h)] != value {
			return h, false
		}
	}
	return h, true
}

// Frames returns how many frames the -wal file has, and how many of these are in the database.
func (f *File) Frames() (all, moved uint32) {
	index := at[[indexBackfill + 1]uint32](f.index)
	return atomic.LoadUint32(&index[headFrames]), atomic.LoadUint32(&index[indexBackfill])
}

// Durable reports whether everything that has been committed is known to be durable.
func (f *File) Durable() bool {
	h, ok := f.head()
	return ok && h == *f.synced.Load() && !f.Broken()
}

// Sync makes everything durable that was committed before it began. After an error it returns that error
// until Rewrite has worked: what was to be synced may be lost, and a later sync would succeed without it. Of
// callers that wait at the same time, one syncs for all.
func (f *File) Sync() error {
	before := f.begun.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failed.Load(); err != nil {
		return *err
	}
	h, ok := f.head()
	if ok && h == *f.synced.Load() || f.begun.Load() != before { // another one began after this call did
		return nil
	}
	f.begun.Add(1)
	if err := f.syncFile(); err != nil {
		return f.fail(err)
	}
	if ok {
		f.synced.Store(&h)
	}
	return nil
}

// syncFile calls the function of SQLite's. f.mu must be held.
func (f *File) syncFile() error {
	rc := function[syncFunc](methods(f.file).FxSync)(f.tls, f.file, sqlite3.SQLITE_SYNC_NORMAL)
	if rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("%w: sync of the -wal file (%d)", engine.ErrIO, rc)
	}
	return nil
}

func (f *File) fail(err error) error {
	f.failed.Store(&err)
	return err
}

// Broken reports whether a sync has failed, and Rewrite has not worked since. A nil File is not broken.
func (f *File) Broken() bool { return f != nil && f.failed.Load() != nil }

// Rewrite writes the -wal file again after a sync of it has failed, so that the next sync includes all of it.
// The caller holds the write lock.
func (f *File) Rewrite() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, ok := f.head()
	if !ok {
		return fmt.Errorf("%w: the -wal file changes without the write lock", engine.ErrIO)
	}
	const chunk = 64 << 10
	buf := libc.Xmalloc(f.tls, chunk)
	if buf == 0 {
		return fmt.Errorf("%w: no memory", engine.ErrIO)
	}
	defer libc.Xfree(f.tls, buf)
	read := function[transferFunc](methods(f.file).FxRead)
	write := function[transferFunc](methods(f.file).FxWrite)
	for offset, end := int64(0), h.size(); offset < end; offset += chunk {
		n := int32(min(chunk, end-offset))
		if rc := read(f.tls, f.file, buf, n, offset); rc != sqlite3.SQLITE_OK {
			return fmt.Errorf("%w: read of the -wal file (%d)", engine.ErrIO, rc)
		}
		if rc := write(f.tls, f.file, buf, n, offset); rc != sqlite3.SQLITE_OK {
			return fmt.Errorf("%w: write of the -wal file (%d)", engine.ErrIO, rc)
		}
	}
	if err := f.syncFile(); err != nil {
		return err
	}
	f.synced.Store(&h)
	f.failed.Store(nil)
	return nil
}

// size returns the size of the -wal file as far as it counts.
func (h walHead) size() int64 {
	if h[headFrames] == 0 {
		return 0
	}
	var word [4]byte
	binary.NativeEndian.PutUint32(word[:], h[headPageSize])
	page := int64(binary.NativeEndian.Uint16(word[2:]))
	if page == 1 {
		page = 64 << 10
	}
	return 32 + int64(h[headFrames])*(24+page)
}

// Checkpoint runs run, which is a checkpoint, and takes notice of its error. A sync must not report success
// after one in a checkpoint failed unnoticed, so no checkpoint runs meanwhile. If a sync has failed already,
// nothing runs: what was lost must not be moved into the database.
func (f *File) Checkpoint(run func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.Broken() {
		f.note(run())
	}
}

// Learn takes notice of the error of a checkpoint by another connection; nil: it worked.
func (f *File) Learn(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(err)
}

func (f *File) note(err error) {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code() == sqlite3.SQLITE_IOERR_FSYNC {
		_ = f.fail(fmt.Errorf("%w: %w", engine.ErrIO, err))
	}
}
