//go:build unix

// Package faultvfs puts a simulated disk between SQLite and a folder. It records the operations that SQLite
// requests, makes the n-th call fail, and reconstructs the files that a power cut would have left. It is for
// tests; the program under test does not know about it.
//
// Held by TestReplayKnowsWhatIsDurable, TestReplayLosesWholeSectors and TestPowerCutOracleSeesLoss. This
// package is not part of the Go API, and may change in any release.
package faultvfs

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	_ "modernc.org/sqlite" // initialises SQLite
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite reaches the disk through a table of functions, the VFS, and through one more table for each open
// file. This VFS is a copy of the system's own in which some functions are replaced. It is the default VFS,
// so that a DSN need not name it. Files outside mounted folders are passed through unchanged.

var install = sync.OnceValue(func() error {
	db, err := sql.Open("sqlite", ":memory:") // the driver initialises SQLite with its first connection
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Ping(); err != nil {
		return err
	}
	tls := libc.NewTLS() // never closed: the tables live as long as the process
	system = sqlite3.Xsqlite3_vfs_find(tls, 0)
	if system == 0 {
		return fmt.Errorf("faultvfs: SQLite has no default VFS")
	}
	table := libc.Xmalloc(tls, types.Size_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	name, err := libc.CString("fault")
	if err != nil || table == 0 {
		return fmt.Errorf("faultvfs: no memory")
	}
	vfs := at[sqlite3.Tsqlite3_vfs](table)
	*vfs = *at[sqlite3.Tsqlite3_vfs](system)
	vfs.FpNext, vfs.FzName = 0, name
	vfs.FxOpen, vfs.FxDelete, vfs.FxAccess = pointer(xOpen), pointer(xDelete), pointer(xAccess)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, table, 1); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("faultvfs: SQLite refuses the VFS: %d", rc)
	}
	return nil
})

// system is SQLite's own VFS for this operating system.
var system uintptr

// at returns the value at an address in SQLite's memory, which is unknown to the garbage collector.
func at[T any](address uintptr) *T {
	return *(**T)(unsafe.Pointer(&address)) // #nosec G103 -- there is no other way to SQLite's memory
}

// pointer returns f as SQLite, translated to Go, stores a function. f must not be a closure.
func pointer[F any](f F) uintptr {
	return *(*uintptr)(unsafe.Pointer(&f)) // #nosec G103 -- as SQLite's translation does it
}

// function is the inverse of pointer.
func function[F any](address uintptr) F {
	return *(*F)(unsafe.Pointer(&address)) // #nosec G103 -- as SQLite's translation does it
}

func bytesAt(address uintptr, n int) []byte {
	return unsafe.Slice(at[byte](address), n) // #nosec G103 -- the caller is SQLite, and n is its own
}

// The types of the functions in the tables.
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	accessFunc   = func(tls *libc.TLS, vfs, name uintptr, flags int32, result uintptr) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	transferFunc = func(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	flagFunc     = func(tls *libc.TLS, file uintptr, flag int32) int32
	sizeFunc     = func(tls *libc.TLS, file, size uintptr) int32
	shmMapFunc   = func(tls *libc.TLS, file uintptr, page, size, extend int32, result uintptr) int32
	shmLockFunc  = func(tls *libc.TLS, file uintptr, offset, n, flags int32) int32
)

// handle is an open file of a mounted folder.
type handle struct {
	disk *Disk
	file int                          // its number in the record of the disk
	own  *sqlite3.Tsqlite3_io_methods // the functions of the system's VFS
}

var (
	handles sync.Map // the address of SQLite's file struct to its *handle
	tables  sync.Map // the address of the system's table to that of its copy
)

func handleOf(file uintptr) *handle {
	h, _ := handles.Load(file)
	return h.(*handle)
}

func xOpen(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	at[sqlite3.Tsqlite3_file](file).FpMethods = 0 // if opening fails, there is nothing to close
	open := function[openFunc](at[sqlite3.Tsqlite3_vfs](system).FxOpen)
	d, base := find(name)
	if d == nil {
		return open(tls, system, name, file, flags, outFlags)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if rc := d.fails(Open); rc != 0 {
		return rc
	}
	if rc := open(tls, system, name, file, flags, outFlags); rc != sqlite3.SQLITE_OK {
		return rc
	}
	f := at[sqlite3.Tsqlite3_file](file)
	handles.Store(file, &handle{d, d.record.opened(base), at[sqlite3.Tsqlite3_io_methods](f.FpMethods)})
	f.FpMethods = tableFor(tls, f.FpMethods)
	d.open++
	return sqlite3.SQLITE_OK
}

// tableFor returns a copy of the table at own that has the functions below.
func tableFor(tls *libc.TLS, own uintptr) uintptr {
	if table, ok := tables.Load(own); ok {
		return table.(uintptr)
	}
	fresh := libc.Xmalloc(tls, types.Size_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	m := at[sqlite3.Tsqlite3_io_methods](fresh)
	*m = *at[sqlite3.Tsqlite3_io_methods](own)
	m.FxClose, m.FxRead, m.FxWrite = pointer(xClose), pointer(xRead), pointer(xWrite)
	m.FxTruncate, m.FxSync, m.FxFileSize = pointer(xTruncate), pointer(xSync), pointer(xFileSize)
	m.FxLock, m.FxShmMap, m.FxShmLock = pointer(xLock), pointer(xShmMap), pointer(xShmLock)
	table, _ := tables.LoadOrStore(own, fresh) // two at once: a few bytes are lost
	return table.(uintptr)
}

func xDelete(tls *libc.TLS, _, name uintptr, syncDir int32) int32 {
	del := function[deleteFunc](at[sqlite3.Tsqlite3_vfs](system).FxDelete)
	d, base := find(name)
	if d == nil {
		return del(tls, system, name, syncDir)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if rc := d.fails(Delete); rc != 0 {
		return rc
	}
	rc := del(tls, system, name, 0)
	if rc == sqlite3.SQLITE_OK {
		d.record.unlinked(base)
		if syncDir&1 != 0 {
			d.record.add(op{kind: syncFolder})
		}
	}
	return rc
}

func xAccess(tls *libc.TLS, _, name uintptr, flags int32, result uintptr) int32 {
	if d, _ := find(name); d != nil {
		d.mu.Lock()
		rc := d.fails(Access)
		d.mu.Unlock()
		if rc != 0 {
			return rc
		}
	}
	return function[accessFunc](at[sqlite3.Tsqlite3_vfs](system).FxAccess)(tls, system, name, flags, result)
}

func xClose(tls *libc.TLS, file uintptr) int32 {
	h := handleOf(file)
	handles.Delete(file)
	h.disk.mu.Lock()
	h.disk.open--
	h.disk.mu.Unlock()
	return function[closeFunc](h.own.FxClose)(tls, file)
}

func xRead(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	h := handleOf(file)
	if rc := h.fails(Read); rc != 0 {
		return rc
	}
	return function[transferFunc](h.own.FxRead)(tls, file, buf, n, offset)
}

func xWrite(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	h := handleOf(file)
	write := function[transferFunc](h.own.FxWrite)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	failed := h.disk.fails(Write)
	if failed != 0 {
		if n /= 2; !h.disk.fault.Half {
			return failed
		}
	}
	rc := write(tls, file, buf, n, offset)
	if rc == sqlite3.SQLITE_OK {
		h.disk.record.add(op{kind: written, file: h.file, offset: offset,
			data: append([]byte(nil), bytesAt(buf, int(n))...)})
		rc = failed
	}
	return rc
}

func xTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	h := handleOf(file)
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if rc := h.disk.fails(Truncate); rc != 0 {
		return rc
	}
	rc := function[truncateFunc](h.own.FxTruncate)(tls, file, size)
	if rc == sqlite3.SQLITE_OK {
		h.disk.record.add(op{kind: truncated, file: h.file, offset: size})
	}
	return rc
}

// xSync does not sync the real disk: the test decides what a power cut leaves.
func xSync(_ *libc.TLS, file uintptr, _ int32) int32 {
	h := handleOf(file)
	h.disk.waitHeld()
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if rc := h.disk.fails(Sync); rc != 0 {
		h.disk.record.add(op{kind: syncFailed, file: h.file})
		return rc
	}
	h.disk.record.add(op{kind: synced, file: h.file})
	// as SQLite's own, once
	if f := at[sqlite3.TunixFile](file); int(f.FctrlFlags)&sqlite3.UNIXFILE_DIRSYNC != 0 {
		f.FctrlFlags &^= sqlite3.UNIXFILE_DIRSYNC
		h.disk.record.add(op{kind: syncFolder})
	}
	return sqlite3.SQLITE_OK
}

func xFileSize(tls *libc.TLS, file, size uintptr) int32 {
	h := handleOf(file)
	if rc := h.fails(Size); rc != 0 {
		return rc
	}
	return function[sizeFunc](h.own.FxFileSize)(tls, file, size)
}

func xLock(tls *libc.TLS, file uintptr, level int32) int32 {
	h := handleOf(file)
	if rc := h.fails(Lock); rc != 0 {
		return rc
	}
	return function[flagFunc](h.own.FxLock)(tls, file, level)
}

func xShmMap(tls *libc.TLS, file uintptr, page, size, extend int32, result uintptr) int32 {
	h := handleOf(file)
	if rc := h.fails(ShmMap); rc != 0 {
		*at[uintptr](result) = 0
		return rc
	}
	return function[shmMapFunc](h.own.FxShmMap)(tls, file, page, size, extend, result)
}

func xShmLock(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	h := handleOf(file)
	if flags&sqlite3.SQLITE_SHM_LOCK != 0 { // SQLite does not ask whether giving a lock back worked
		if rc := h.fails(ShmLock); rc != 0 {
			return rc
		}
	}
	return function[shmLockFunc](h.own.FxShmLock)(tls, file, offset, n, flags)
}

// find returns the mounted folder that holds a file, and the file's name in it.
func find(name uintptr) (*Disk, string) {
	if name == 0 { // a temporary file
		return nil, ""
	}
	dir, base := filepath.Split(libc.GoString(name))
	d, ok := mounted.Load(filepath.Clean(dir))
	if !ok {
		return nil, ""
	}
	return d.(*Disk), base
}

var mounted sync.Map // the folder's path to its *Disk
