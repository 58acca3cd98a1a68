//go:build unix

package faultvfs

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Op is one thing that SQLite asks of a disk.
type Op int

// The operations that can fail on purpose.
const (
	Read Op = iota
	Write
	Sync
	Truncate
	Open
	Delete
	Access // is there such a file?
	Size
	Lock
	ShmMap
	ShmLock
	Ops // their number
)

// String returns the name of op.
func (o Op) String() string {
	return [...]string{"read", "write", "sync", "truncate", "open", "delete", "access", "size", "lock",
		"shm-map", "shm-lock"}[o]
}

// Fault is a failure that is to happen.
type Fault struct {
	Op      Op
	N       int   // the call that fails, counted from Fail on; the first is 1
	Code    int32 // SQLite's, as its own VFS would return it
	Forever bool  // so do all later ones
	Half    bool  // of a write that fails, half gets through
}

// At is f at call n.
func (f Fault) At(n int) Fault {
	f.N = n
	return f
}

// Kind says what fails and how, apart from N.
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

// String says what fails.
func (f Fault) String() string { return fmt.Sprintf("call %d: %s", f.N, f.Kind()) }

// Disk is what SQLite sees of a mounted folder. It records everything. No sync reaches the real disk: how
// much of what is written survives is up to the test. It is safe for concurrent use.
type Disk struct {
	mu     sync.Mutex
	record Record
	calls  [Ops]int
	fault  *Fault // nil: all is well
	failed int    // how many calls have
	quiet  int    // how many Quietly are running
	open   int    // files
}

// Mount makes dir, puts files in it, by name, and is between it and SQLite until the test ends. A test that
// has opened a ledger there must have closed it by then.
func Mount(t testing.TB, dir string, files map[string][]byte) *Disk {
	t.Helper()
	d, unmount, err := MountFiles(dir, files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unmount)
	return d
}

// MountFiles is Mount for a folder that is one of many in a test.
func MountFiles(dir string, files map[string][]byte) (d *Disk, unmount func(), err error) {
	if err := install(); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // as SQLite resolves the names of files
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

// Now returns how much is recorded: a moment in the disk's life.
func (d *Disk) Now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.record.ops)
}

// Record returns what was recorded so far.
func (d *Disk) Record() *Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.record
	return &r
}

// Fail arms a fault in place of the one before it.
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

// Quietly runs fn without faults, and without counting its calls.
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

// Calls returns how often each operation was asked for since the last Fail, or since Mount.
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

// fails counts a call and returns the code with which it fails; 0 if it does not. d.mu is held.
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
