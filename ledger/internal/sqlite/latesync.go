package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
)

// Late syncs. SQLite syncs a commit while it holds the write lock, so on a disk whose syncs take 5 ms all
// processes make 200 commits a second. A writer with late syncs commits with
// synchronous=NORMAL, which does not sync, and gives the lock back; Sync then makes durable what has been
// committed by whatever process. A power cut loses the end of the -wal file, which was not acknowledged.
//
// The -wal file is written from its beginning again only after a checkpoint, which syncs the -wal file before
// it and the database after it. So one sync of the -wal file is enough for all frames that ever were in it.
//
// An error of a sync is reported once, and a later sync succeeds without what was lost. SQLite ignores errors
// of the checkpoints that it makes after a commit, so these are made here.

// lateSync is the -wal file of a connection in WAL mode, as SQLite has it open.
type lateSync struct {
	file  uintptr // SQLite's struct of the -wal file
	index uintptr // the first page of the index of the -wal file, which is shared memory

	synced atomic.Pointer[walHead] // what the last sync made durable
	failed atomic.Pointer[error]   // why a sync failed, until rewrite has worked

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

// maxFrames is how many frames the -wal file has before they are moved into the database.
const maxFrames = 1000

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

// newLateSync returns the lateSync of a connection that has read in WAL mode; nil where it cannot have one.
func newLateSync(conn any) *lateSync {
	field := reflect.Indirect(reflect.ValueOf(conn)).FieldByName("db")
	if field.Kind() != reflect.Uintptr || field.Uint() == 0 {
		return nil
	}
	db := uintptr(field.Uint())
	l := &lateSync{tls: libc.NewTLS()}
	l.synced.Store(&walHead{})
	main, err := libc.CString("main")
	if err != nil {
		return nil
	}
	defer libc.Xfree(l.tls, main)
	result := libc.Xcalloc(l.tls, 1, 8)
	defer libc.Xfree(l.tls, result)
	if sqlite3.Xsqlite3_file_control(l.tls, db, main, sqlite3.SQLITE_FCNTL_JOURNAL_POINTER, result) != 0 {
		return nil
	}
	l.file = *at[uintptr](result)
	if l.file == 0 || at[sqlite3.Tsqlite3_file](l.file).FpMethods == 0 ||
		sqlite3.Xsqlite3_file_control(l.tls, db, main, sqlite3.SQLITE_FCNTL_FILE_POINTER, result) != 0 {
		return nil
	}
	file := *at[uintptr](result)
	if file == 0 || methods(file).FiVersion < 2 {
		return nil
	}
	*at[uintptr](result) = 0
	if function[shmMapFunc](methods(file).FxShmMap)(l.tls, file, 0, 32<<10, 0, result) != 0 {
		return nil
	}
	if l.index = *at[uintptr](result); l.index == 0 {
		return nil
	}
	return l
}

// close is for before the connection is closed, which may make a checkpoint.
func (l *lateSync) close(writer *engine.Session) {
	if l == nil {
		return
	}
	if l.broken() {
		if _, err := writer.Exec(`BEGIN IMMEDIATE`); err == nil {
			_ = l.rewrite()
			_, _ = writer.Exec(`ROLLBACK`)
		}
	}
	l.tls.Close()
}

// head returns the state of the -wal file; ok is false while a commit changes it.
func (l *lateSync) head() (h walHead, ok bool) {
	copies := at[[24]uint32](l.index)
	for i := range copies {
		if value := atomic.LoadUint32(&copies[i]); i < len(h) {
			h[i] = value
		} else if h[i-len(h)] != value {
			return h, false
		}
	}
	return h, true
}

// frames returns how many frames the -wal file has, and how many of these are in the database.
func (l *lateSync) frames() (all, moved uint32) {
	index := at[[indexBackfill + 1]uint32](l.index)
	return atomic.LoadUint32(&index[headFrames]), atomic.LoadUint32(&index[indexBackfill])
}

// durable reports whether everything that has been committed is known to be durable.
func (l *lateSync) durable() bool {
	h, ok := l.head()
	return ok && h == *l.synced.Load() && !l.broken()
}

// sync makes everything durable that was committed before it began. After an error it returns that error
// until rewrite has worked: what was to be synced may be lost, and a later sync would succeed without it. Of
// callers that wait for each other, one syncs for all.
func (l *lateSync) sync() error {
	before := l.begun.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.failed.Load(); err != nil {
		return *err
	}
	h, ok := l.head()
	if ok && h == *l.synced.Load() || l.begun.Load() != before { // another one began after this call did
		return nil
	}
	l.begun.Add(1)
	if err := l.syncFile(); err != nil {
		return l.fail(err)
	}
	if ok {
		l.synced.Store(&h)
	}
	return nil
}

// syncFile calls the function of SQLite's. l.mu must be held.
func (l *lateSync) syncFile() error {
	rc := function[syncFunc](methods(l.file).FxSync)(l.tls, l.file, sqlite3.SQLITE_SYNC_NORMAL)
	if rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("%w: sync of the -wal file (%d)", engine.ErrIO, rc)
	}
	return nil
}

func (l *lateSync) fail(err error) error {
	l.failed.Store(&err)
	return err
}

// broken reports whether a sync has failed, and rewrite has not worked since.
func (l *lateSync) broken() bool { return l != nil && l.failed.Load() != nil }

// rewrite writes the -wal file again after a sync of it has failed, so that the next sync includes all of it.
// The caller holds the write lock.
func (l *lateSync) rewrite() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.head()
	if !ok {
		return fmt.Errorf("%w: the -wal file changes without the write lock", engine.ErrIO)
	}
	const chunk = 64 << 10
	buf := libc.Xmalloc(l.tls, chunk)
	if buf == 0 {
		return fmt.Errorf("%w: no memory", engine.ErrIO)
	}
	defer libc.Xfree(l.tls, buf)
	read := function[transferFunc](methods(l.file).FxRead)
	write := function[transferFunc](methods(l.file).FxWrite)
	for offset, end := int64(0), h.size(); offset < end; offset += chunk {
		n := int32(min(chunk, end-offset))
		if rc := read(l.tls, l.file, buf, n, offset); rc != sqlite3.SQLITE_OK {
			return fmt.Errorf("%w: read of the -wal file (%d)", engine.ErrIO, rc)
		}
		if rc := write(l.tls, l.file, buf, n, offset); rc != sqlite3.SQLITE_OK {
			return fmt.Errorf("%w: write of the -wal file (%d)", engine.ErrIO, rc)
		}
	}
	if err := l.syncFile(); err != nil {
		return err
	}
	l.synced.Store(&h)
	l.failed.Store(nil)
	return nil
}

// rewriteLocked is rewrite under the write lock of another connection.
func (l *lateSync) rewriteLocked(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err = l.rewrite()
	_, rollbackErr := conn.ExecContext(ctx, `ROLLBACK`)
	return cmp.Or(err, rollbackErr)
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

// Late implements engine.LateSyncer.
func (f *Engine) Late() bool { return f.late != nil }

// Sync implements engine.LateSyncer.
func (f *Engine) Sync() error {
	if f.late == nil || f.late.durable() {
		return nil
	}
	failpoint.Hit("sync")
	return f.late.sync()
}

// startLateSyncs has the writer commit without syncs, unless there are to be none at all, or late ones are
// not possible.
func (f *Engine) startLateSyncs(ctx context.Context) error {
	if f.info.Sync != "full" {
		return nil
	}
	c := f.writer.Connection.(*connection)
	err := c.conn.Raw(func(conn any) error {
		f.late = newLateSync(conn)
		return nil
	})
	setting := "PRAGMA synchronous = NORMAL"
	if f.late == nil {
		setting = fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", maxFrames)
	}
	if err == nil {
		_, err = c.conn.ExecContext(ctx, setting)
	}
	return err
}

// moveFrames is the checkpoint that SQLite would make after a commit. Errors of it are none of the commit's,
// unless the -wal file could not be synced.
func (f *Engine) moveFrames() {
	if all, moved := f.late.frames(); all < maxFrames || all == moved {
		return
	}
	f.late.mu.Lock() // no sync may succeed after a failed one without knowing of it
	defer f.late.mu.Unlock()
	if f.late.broken() {
		return
	}
	rows, row, err := f.writer.Select(context.Background(), `PRAGMA wal_checkpoint(PASSIVE)`, nil)
	if err == nil {
		err = rows.Next(row)
		_ = rows.Close()
	}
	f.late.note(err)
}

// learn takes notice of the error of a checkpoint.
func (l *lateSync) learn(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(err)
}

func (l *lateSync) note(err error) {
	if code(err) == sqlite3.SQLITE_IOERR_FSYNC {
		_ = l.fail(fmt.Errorf("%w: %w", engine.ErrIO, err))
	}
}
