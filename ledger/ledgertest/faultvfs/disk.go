//go:build unix

package faultvfs

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Op is one operation that SQLite requests from a disk.
type Op int

// The operations that can be made to fail.
const (
	Read Op = iota
	Write
	Sync
	Truncate
	Open
	Delete
	Access // does this file exist?
	Size
	Lock
	ShmMap
	ShmLock
	Ops // the number of operations
)

// String returns the name of op.
func (o Op) String() string {
	return [...]string{"read", "write", "sync", "truncate", "open", "delete", "access", "size", "lock",
		"shm-map", "shm-lock"}[o]
}

// Fault is a failure to inject.
type Fault struct {
	Op      Op
	N       int   // the call that fails, counted from Fail on; the first is 1
	Code    int32 // SQLite's error code, as its own VFS would return it
	Forever bool  // all later calls fail too
	Half    bool  // a write that fails writes the first half
}

// At returns f with n as the call that fails.
func (f Fault) At(n int) Fault {
	f.N = n
	return f
}

// Kind describes the fault without N.
func (f Fault) Kind() string {
	text := fmt.Sprintf("%s fails with %d", f.Op, f.Code)
	if f.Half {
		text += ", half done"
	}
	if f.Forever {
		text += ", for ever"
	}
	return text
}

// String describes the fault.
func (f Fault) String() string { return fmt.Sprintf("call %d: %s", f.N, f.Kind()) }

// Disk is a mounted folder as SQLite sees it. It records every operation. No sync reaches the real disk: the
// test decides how much of what was written survives. It is safe for concurrent use.
type Disk struct {
	mu     sync.Mutex
	record Record
	calls  [Ops]int
	fault  *Fault // nil: no fault
	failed int    // how many calls have failed
	quiet  int    // how many calls of Quietly are running
	open   int    // how many files are open
	held   *hold  // the next sync; nil: it does not wait
}

// Mount creates dir, writes files into it, by name, and intercepts SQLite's access to it until the test ends.
// A test that opens a ledger there must close it before.
func Mount(t testing.TB, dir string, files map[string][]byte) *Disk {
	t.Helper()
	d, unmount, err := MountFiles(dir, files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unmount)
	return d
}

// MountFiles is Mount for tests that mount many folders.
func MountFiles(dir string, files map[string][]byte) (d *Disk, unmount func(), err error) {
	if err := install(); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // SQLite resolves file names the same way
		return nil, nil, err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, nil, err
		}
	}
	d = &Disk{record: newRecord(files)}
	if _, already := mounted.LoadOrStore(dir, d); already {
		return nil, nil, fmt.Errorf("faultvfs: %s is mounted", dir)
	}
	return d, func() { mounted.Delete(dir) }, nil
}

// Now returns the number of operations recorded so far. It serves as a time of the disk.
func (d *Disk) Now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.record.ops)
}

// Record returns the operations recorded so far.
func (d *Disk) Record() *Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.record
	return &r
}

// Fail arms a fault, which replaces the previous one.
func (d *Disk) Fail(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.calls, d.failed = &f, [Ops]int{}, 0
}

// Disarm disarms the fault and returns how many calls have failed.
func (d *Disk) Disarm() (failed int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = nil
	return d.failed
}

// Failed returns how many calls have failed since Fail.
func (d *Disk) Failed() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// HoldSync makes the next sync wait until release is called; waits is closed once it does. Later ones do not
// wait.
func (d *Disk) HoldSync() (waits <-chan struct{}, release func()) {
	h := &hold{make(chan struct{}), make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = h
	return h.waits, sync.OnceFunc(func() { close(h.released) })
}

// hold is a sync that waits.
type hold struct{ waits, released chan struct{} }

func (d *Disk) waitHeld() {
	d.mu.Lock()
	h := d.held
	d.held = nil
	d.mu.Unlock()
	if h != nil {
		close(h.waits)
		<-h.released
	}
}

// Quietly runs fn without faults, and does not count its calls.
func (d *Disk) Quietly(fn func()) {
	add := func(n int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.quiet += n
	}
	add(1)
	defer add(-1)
	fn()
}

// Calls returns how often each operation was requested since the last Fail, or since Mount.
func (d *Disk) Calls() [Ops]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Files returns how many files of the folder SQLite has open.
func (d *Disk) Files() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open
}

// fails counts a call and returns the code with which it fails, or 0. d.mu must be held.
func (d *Disk) fails(o Op) int32 {
	if d.quiet > 0 {
		return 0
	}
	d.calls[o]++
	f := d.fault
	if f == nil || f.Op != o || d.calls[o] < f.N || d.calls[o] > f.N && !f.Forever {
		return 0
	}
	d.failed++
	return f.Code
}

func (h *handle) fails(o Op) int32 {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return h.disk.fails(o)
}
