//go:build unix

package faultvfs_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/ledgertest/faultvfs"
)

// lateCommit is a ledger on a disk that holds the sync of one commit, and a second store, as another process
// would have it.
type lateCommit struct {
	*testing.T
	disk     *faultvfs.Disk
	other    *ledger.Store
	answered chan error // the outcome of the command whose sync is held
	release  func()
}

func newLateCommit(t *testing.T) *lateCommit {
	t.Helper()
	dir := t.TempDir()
	disk := faultvfs.Mount(t, dir, nil)
	path := filepath.Join(dir, "jobs.db")
	store, other := ledgertest.OpenAt(t, path), ledgertest.OpenAt(t, path)
	if _, err := enqueueJob(store, "first"); err != nil { // the -wal file has its header
		t.Fatal(err)
	}
	waits, release := disk.HoldSync()
	t.Cleanup(release)
	c := &lateCommit{t, disk, other, make(chan error, 1), release}
	go func() {
		_, err := enqueueJob(store, "late")
		c.answered <- err
	}()
	<-waits
	return c
}

func enqueueJob(s *ledger.Store, key string) ([]commands.Enqueued, error) {
	return (&commands.Service{Store: s}).Enqueue(context.Background(), "cli:test",
		commands.Enqueue{Queue: "q", Key: key})
}

// survivors returns how many events a power cut now leaves, which takes all that was not synced.
func (c *lateCommit) survivors() (n int64) {
	c.Helper()
	replay := c.disk.Record().NewReplay(faultvfs.Lie{}, true)
	replay.Go(c.disk.Now())
	files := replay.Crash(faultvfs.LoseAll, rand.New(rand.NewPCG(1, 1)))
	_, err := reopened(filepath.Join(c.TempDir(), "cut"), files, full,
		func(_ *faultvfs.Disk, store *ledger.Store) (err error) {
			n, err = tailOf(store)
			return err
		})
	if err != nil {
		c.Fatal(err)
	}
	return n
}

func tailOf(s *ledger.Store) (n int64, err error) {
	err = read(s, func(tx *ledger.Tx) (err error) {
		n, err = tx.Tail(context.Background())
		return err
	})
	return n, err
}

// finish lets the sync go on, after which the command is answered.
func (c *lateCommit) finish() {
	c.Helper()
	select {
	case err := <-c.answered:
		c.Errorf("answered before its commit was synced: %v", err)
	default:
	}
	c.release()
	if err := <-c.answered; err != nil {
		c.Error(err)
	}
	if err := read(c.other, verify); err != nil {
		c.Error(err)
	}
}

// Who reads what another process has committed and not synced yet syncs it before it is shown.
func TestLateSyncReaderShowsWhatIsDurable(t *testing.T) {
	c := newLateCommit(t)
	if n, err := tailOf(c.other); err != nil || n != 2 {
		t.Fatalf("%d events, %v", n, err)
	}
	if got := c.survivors(); got != 2 {
		t.Errorf("a reader saw 2 events, and a power cut left %d", got)
	}
	c.finish()
}

// The write lock is free while a commit is synced, and a later commit of another process makes it durable.
func TestLateSyncLeavesWriteLock(t *testing.T) {
	c := newLateCommit(t)
	if _, err := enqueueJob(c.other, "after"); err != nil {
		t.Fatal(err)
	}
	if got := c.survivors(); got != 3 {
		t.Errorf("a command was answered after 3 events, and a power cut left %d", got)
	}
	c.finish()
}
