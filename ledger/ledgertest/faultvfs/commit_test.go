//go:build unix

package faultvfs_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/ledgertest/faultvfs"
)

// Callers whose commands share a transaction share the outcome of its COMMIT.
func TestCommitDiskErrorIsUnknownToAllCallers(t *testing.T) {
	for name, c := range map[string]struct {
		fault faultvfs.Fault
		want  []error
	}{
		"the sync fails": {faultvfs.Fault{Op: faultvfs.Sync, Code: sqlite3.SQLITE_IOERR_FSYNC},
			[]error{ledger.ErrUnknown, ledger.ErrIO}},
		"a write fails": {faultvfs.Fault{Op: faultvfs.Write, Code: sqlite3.SQLITE_IOERR_WRITE},
			[]error{ledger.ErrUnknown, ledger.ErrIO}},
		"the disk is full": {faultvfs.Fault{Op: faultvfs.Write, Code: sqlite3.SQLITE_FULL, Half: true},
			[]error{ledger.ErrUnknown, ledger.ErrFull}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			disk := faultvfs.Mount(t, dir, nil)
			store := ledgertest.OpenAt(t, filepath.Join(dir, "jobs.db"))
			queue := &commands.Service{Store: store}
			shared := false
			const callers = 16
			for round := 0; !shared && round < 200; round++ {
				var failed atomic.Int32
				disk.Fail(c.fault.At(1))
				var all []func() error
				for i := range callers {
					job := commands.Enqueue{Queue: "q", Key: fmt.Sprint(round, " ", i), Payload: []byte("once")}
					all = append(all, func() error { return enqueueTwice(queue, job, c.want, &failed) })
				}
				if err := inParallel(all...); err != nil {
					t.Fatal(err)
				}
				if disk.Disarm() != 1 || failed.Load() == 0 {
					t.Fatalf("round %d: %d callers got the error of a COMMIT that failed", round, failed.Load())
				}
				shared = failed.Load() > 1
				var n int64
				err := read(store, func(tx *ledger.Tx) (err error) {
					if err := verify(tx); err != nil {
						return err
					}
					n, err = tx.Tail(t.Context())
					return err
				})
				if want := int64((round + 1) * callers); err != nil || n != want {
					t.Fatalf("round %d: %d jobs, want %d (%v)", round, n, want, err)
				}
			}
			if !shared {
				t.Error("no two callers ever shared a COMMIT that failed")
			}
		})
	}
}

// enqueueTwice sends a command, and sends it again if it gets an error.
func enqueueTwice(queue *commands.Service, job commands.Enqueue, want []error, failed *atomic.Int32) error {
	_, err := queue.Enqueue(context.Background(), "cli:test", job)
	if err == nil {
		return nil
	}
	failed.Add(1)
	for _, want := range want {
		if !errors.Is(err, want) {
			return fmt.Errorf("got %w, want %w", err, want)
		}
	}
	_, err = queue.Enqueue(context.Background(), "cli:test", job)
	return err
}
