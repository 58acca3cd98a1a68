//go:build unix

package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/schema"
)

func lockExclusive(t *testing.T, path string, damaged bool) *ledger.ExclusiveLock {
	t.Helper()
	s, err := ledger.LockExclusive(t.Context(), path, damaged)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Release)
	return s
}

// names returns the names of the files in the folder of path.
func names(t *testing.T, path string) (list []string) {
	t.Helper()
	for name := range folder(t, filepath.Dir(path)) {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func TestReplaceRefusesOpenLedger(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a lock does not distinguish two users in one process")
	}
	path := closed(t, 1)
	s, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []bool{false, true} {
		if _, err := ledger.LockExclusive(t.Context(), path, damaged); !errors.Is(err, ledger.ErrBusy) {
			t.Errorf("damaged %t: a ledger that is open was locked: %v", damaged, err)
		}
	}
	// the failed attempts hold no lock
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:test") })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lockExclusive(t, path, false).Release()
	wantActors(t, openAt(t, path), "cli:test", "cli:test")
}

func TestReplaceLockKeepsOthersOut(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a lock does not distinguish two users in one process")
	}
	path := closed(t, 1)
	s := lockExclusive(t, path, false)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if opened, err := ledger.Open(ctx, path); err == nil {
		_ = opened.Close()
		t.Error("it was opened")
	}
	if tail, _ := looked(t, ledger.InspectFileOnly, path); tail != 1 {
		t.Errorf("a read of the file alone: it ends with %d", tail)
	}
	s.Release()
	wantActors(t, openAt(t, path), "cli:test")
}

func TestReplaceKeepsOldLedger(t *testing.T) {
	t.Parallel()
	path := closed(t, 1)
	fresh, kept := path+".fresh", path+".kept"
	if err := ledger.CopyFile(t.Context(), path, fresh); err != nil {
		t.Fatal(err)
	}
	old, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, old, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:later") })
	run(t, "cp", path, path+".killed") // the state that a killed process leaves
	run(t, "cp", path+"-wal", path+".killed-wal")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		if err := os.Rename(path+".killed"+suffix, path+suffix); err != nil {
			t.Fatal(err)
		}
	}
	s := lockExclusive(t, path, false)
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(fresh, kept); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a file that is there: %v", err)
	}
	_ = os.Remove(kept)
	if err := s.Replace(fresh, kept); err != nil {
		t.Fatal(err)
	}
	s.Release()
	if got := names(t, path); !slices.Equal(got, []string{"jobs.db", "jobs.db.kept"}) {
		t.Errorf("there are %q", got)
	}
	wantActors(t, openAt(t, path), "cli:test")
	wantActors(t, openAt(t, kept), "cli:test", "cli:later")
}

// The -wal file of a ledger that SQLite cannot read is moved away with it: the new ledger must not use it.
func TestReplaceDamagedLedgerWithSidecars(t *testing.T) {
	t.Parallel()
	path := closed(t, 1)
	fresh, kept := path+".fresh", path+".kept"
	if err := ledger.CopyFile(t.Context(), path, fresh); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if err := os.WriteFile(path+suffix, []byte("not what it should be"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := lockExclusive(t, path, true).Replace(fresh, kept); err != nil {
		t.Fatal(err)
	}
	want := []string{"jobs.db", "jobs.db.kept", "jobs.db.kept-journal", "jobs.db.kept-shm", "jobs.db.kept-wal"}
	if got := names(t, path); !slices.Equal(got, want) {
		t.Errorf("there are %q", got)
	}
}

// A store whose file was exchanged while it was being opened must not write to the removed file.
func TestOpenNoticesExchangedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	fresh := closed(t, 0) // made before, since that takes long with the race detector, and Open waits 10 s
	// Another process is creating the ledger: Open connects, and waits for the lock to migrate.
	db := plain(t, path)
	mustExec(t, db, fmt.Sprintf(`PRAGMA application_id = %d`, schema.ApplicationID))
	mustExec(t, db, `PRAGMA journal_mode = wal`)
	mustExec(t, db, `BEGIN IMMEDIATE`)
	type opened struct {
		*ledger.Store
		error
	}
	done := make(chan opened, 1)
	go func() {
		s, err := ledger.Open(context.Background(), path)
		done <- opened{s, err}
	}()
	time.Sleep(300 * time.Millisecond) // a shorter pause would open the other ledger, which is also correct
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+suffix, path+".old"+suffix); err != nil {
			t.Fatal(err)
		}
	}
	must(t, os.Rename(fresh, path))
	other := ledgertest.OpenAt(t, path)
	mustExec(t, db, `ROLLBACK`)
	got := <-done
	if got.error != nil {
		// Between two of the renames it sees a ledger of which a part is missing.
		if !errors.Is(got.error, ledger.ErrReplaced) && !errors.Is(got.error, ledger.ErrForeignSidecar) {
			t.Errorf("got %v", got.error)
		}
		return
	}
	defer got.Store.Close()
	if err := got.Write(t.Context(), func(tx *ledger.Tx) error {
		return note(t.Context(), tx,
			"cli:ghost")
	}); err == nil {
		wantActors(t, other, "cli:ghost")
	}
}

// A process opens a ledger's file just before the file is exchanged, and asks SQLite for a lock just after:
// it gets the new ledger's -wal file. A migration decided by the old file must not be written there.
func TestOpenMigratesNoExchangedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	db := plain(t, path) // created, and not yet migrated
	mustExec(t, db, fmt.Sprintf(`PRAGMA application_id = %d`, schema.ApplicationID))
	must(t, db.Close())
	fresh := closed(t, 1)
	s, err := ledger.Open(t.Context(), fresh)
	must(t, err)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "cli:later") })
	run(t, "cp", fresh, path+".fresh") // the state that a killed process leaves
	run(t, "cp", fresh+"-wal", path+".fresh-wal")
	must(t, s.Close())
	err = ledger.SetUpLate(t.Context(), path, func() {
		for _, suffix := range []string{"", "-wal"} {
			must(t, os.Rename(path+".fresh"+suffix, path+suffix))
		}
	})
	if !errors.Is(err, ledger.ErrReplaced) {
		t.Errorf("got %v, want ErrReplaced", err)
	}
	wantActors(t, openAt(t, path), "cli:test", "cli:later")
}

// The replacement is copied while no process can write, so it contains everything that was acknowledged
// before, and receives everything that is acknowledged later.
func TestReplaceUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	path := closed(t, 1)
	const processes = 3
	rounds := ledgertest.Size(2, 3, 5)
	var children []*exec.Cmd
	var stops []io.Closer
	outputs := make([]bytes.Buffer, processes)
	for i := range processes {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "LEDGER_TEST_CHURN="+path)
		child.Stdout, child.Stderr = &outputs[i], os.Stderr
		stop, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		children, stops = append(children, child), append(stops, stop)
	}
	for end := time.Now().Add(time.Minute); rounds > 0 && time.Now().Before(end); {
		s, err := ledger.LockExclusive(t.Context(), path, false)
		if errors.Is(err, ledger.ErrBusy) {
			continue
		}
		if err != nil {
			t.Error(err)
			break
		}
		fresh := fmt.Sprintf("%s.fresh-%d", path, rounds)
		err = ledger.CopyFile(t.Context(), path, fresh)
		if err == nil {
			err = s.Replace(fresh, fmt.Sprintf("%s.kept-%d", path, rounds))
		}
		s.Release()
		if err != nil {
			t.Error(err)
			break
		}
		rounds--
		time.Sleep(200 * time.Millisecond) // time for other processes to open it
	}
	var acknowledged []string
	for i, child := range children {
		_ = stops[i].Close()
		if err := child.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		acknowledged = append(acknowledged, strings.Fields(outputs[i].String())...)
	}
	if rounds > 0 || len(acknowledged) == 0 {
		t.Fatalf("%d rounds are left, %d events were acknowledged", rounds, len(acknowledged))
	}
	there := actors(t, openAt(t, path))
	for _, actor := range acknowledged {
		if !slices.Contains(there, actor) {
			t.Errorf("the event of %s was acknowledged and is not there", actor)
		}
	}
	t.Logf("%d events were acknowledged meanwhile", len(acknowledged))
}
