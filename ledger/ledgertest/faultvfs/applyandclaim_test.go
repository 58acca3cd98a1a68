//go:build unix

package faultvfs_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/ledgertest/faultvfs"
)

// A worker ends a job and claims the next one in one call. A disk fault must not look like a refusal of the
// end: the worker would take a finished job for lost.
func TestApplyAndClaimDiskFaultIsNoRefusal(t *testing.T) {
	dir := t.TempDir()
	disk := faultvfs.Mount(t, dir, nil)
	path := filepath.Join(dir, "jobs.db")
	queue := &commands.Service{Store: ledgertest.OpenAt(t, path)}
	for range 400 {
		if _, err := queue.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "q"}); err != nil {
			t.Fatal(err)
		}
	}
	request := commands.ClaimRequest{Queues: []string{"q"}, Worker: event.Worker{Name: "w", Boot: "b"}}
	held, err := queue.Claim(t.Context(), request)
	if err != nil || len(held) != 1 {
		t.Fatalf("%d claimed: %v", len(held), err)
	}
	answered := 0
	for _, fault := range []faultvfs.Fault{
		{Op: faultvfs.ShmLock, Code: sqlite3.SQLITE_IOERR_SHMLOCK},
		{Op: faultvfs.ShmLock, Code: sqlite3.SQLITE_IOERR_SHMLOCK, Forever: true},
		{Op: faultvfs.Write, Code: sqlite3.SQLITE_IOERR_WRITE}, {Op: faultvfs.Write, Code: sqlite3.SQLITE_FULL,
			Forever: true},
		{Op: faultvfs.Sync, Code: sqlite3.SQLITE_IOERR_FSYNC}, {Op: faultvfs.Read, Code: sqlite3.SQLITE_IOERR_READ,
			Forever: true},
		{Op: faultvfs.Open, Code: sqlite3.SQLITE_CANTOPEN, Forever: true},
	} {
		for n := 1; n <= 12; n++ {
			what := fmt.Sprint(fault.At(n))
			steps := []commands.Op{{Job: held[0], Command: commands.Succeed{Token: held[0].Token,
				Result: []byte("done")}}}
			disk.Fail(fault.At(n))
			outcomes, claimed, err := queue.ApplyAndClaim(t.Context(), "worker:w", steps, request)
			hit := disk.Disarm() > 0
			if err != nil {
				answered++
				if !errors.Is(err, ledger.ErrIO) && !errors.Is(err, ledger.ErrFull) {
					t.Errorf("%s: %v", what, err)
				}
				if outcomes, claimed, err = queue.ApplyAndClaim(t.Context(), "worker:w", steps, request); err != nil {
					t.Fatalf("%s, once more: %v", what, err)
				}
			}
			if len(outcomes) != 1 || outcomes[0].Err != nil || outcomes[0].Job.State != event.SucceededState {
				t.Fatalf("%s: the end was answered with %+v", what, outcomes)
			}
			if len(claimed) != 1 { // the fault may have failed only the claim
				if claimed, err = queue.Claim(t.Context(), request); err != nil || len(claimed) != 1 {
					t.Fatalf("%s: %d claimed: %v", what, len(claimed), err)
				}
			}
			if held = claimed; !hit {
				break
			}
		}
	}
	if answered == 0 {
		t.Error("no fault was met")
	}
	if err := read(queue.Store, verify); err != nil {
		t.Error(err)
	}
}
