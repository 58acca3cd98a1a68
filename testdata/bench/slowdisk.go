//go:build unix

package main

import (
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// A slow disk: a copy of SQLite's table of functions for the operating system, whose syncs take longer. It is
// the default from slowSyncs on, also for connections that jobledger opens.

var (
	syncDelay  atomic.Int64 // in nanoseconds
	slowSystem uintptr      // SQLite's own VFS
	slowTables sync.Map     // the address of the system's table of a file's functions to that of its copy
	slowOwn    sync.Map     // the reverse
)

// slowSyncs makes each sync of SQLite in this process take so much longer, from now on.
func slowSyncs(delay time.Duration) error {
	syncDelay.Store(int64(delay))
	if delay == 0 {
		return nil
	}
	return installSlow()
}

var installSlow = sync.OnceValue(func() error {
	db, err := sql.Open("sqlite", ":memory:") // the driver initialises SQLite with its first connection
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Ping(); err != nil {
		return err
	}
	tls := libc.NewTLS() // never closed: the tables live as long as the process
	slowSystem = sqlite3.Xsqlite3_vfs_find(tls, 0)
	table := libc.Xmalloc(tls, types.Size_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	name, err := libc.CString("slow")
	if err != nil || table == 0 || slowSystem == 0 {
		return errors.New("no memory or no VFS")
	}
	vfs := inSQLite[sqlite3.Tsqlite3_vfs](table)
	*vfs = *inSQLite[sqlite3.Tsqlite3_vfs](slowSystem)
	vfs.FpNext, vfs.FzName, vfs.FxOpen = 0, name, address(slowOpen)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, table, 1); rc != sqlite3.SQLITE_OK {
		return errors.New("SQLite refuses the VFS")
	}
	return nil
})

// inSQLite returns the value at an address in SQLite's memory.
func inSQLite[T any](at uintptr) *T { return *(**T)(unsafe.Pointer(&at)) }

// address returns f as SQLite, translated to Go, stores a function; called is the inverse.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func called[F any](at uintptr) F { return *(*F)(unsafe.Pointer(&at)) }

func slowOpen(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	open := called[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](
		inSQLite[sqlite3.Tsqlite3_vfs](slowSystem).FxOpen)
	rc := open(tls, slowSystem, name, file, flags, outFlags)
	if f := inSQLite[sqlite3.Tsqlite3_file](file); rc == sqlite3.SQLITE_OK && f.FpMethods != 0 {
		f.FpMethods = slowTable(tls, f.FpMethods)
	}
	return rc
}

func slowTable(tls *libc.TLS, own uintptr) uintptr {
	if table, ok := slowTables.Load(own); ok {
		return table.(uintptr)
	}
	fresh := libc.Xmalloc(tls, types.Size_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	m := inSQLite[sqlite3.Tsqlite3_io_methods](fresh)
	*m = *inSQLite[sqlite3.Tsqlite3_io_methods](own)
	m.FxSync = address(slowSync)
	slowOwn.Store(fresh, own)
	table, _ := slowTables.LoadOrStore(own, fresh)
	return table.(uintptr)
}

func slowSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	time.Sleep(time.Duration(syncDelay.Load()))
	own, _ := slowOwn.Load(inSQLite[sqlite3.Tsqlite3_file](file).FpMethods)
	sync := called[func(*libc.TLS, uintptr, int32) int32](
		inSQLite[sqlite3.Tsqlite3_io_methods](own.(uintptr)).FxSync)
	return sync(tls, file, flags)
}
