package files_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/files"
	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
)

const actor = "cli:test"

// newLedger creates a ledger in a file with two jobs in the queue mail, of which one has succeeded.
func newLedger(t *testing.T) (path string, store *ledger.Store) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "jobs.db")
	store, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	service := &commands.Service{Store: store}
	enqueue(t, store, "one", "two")
	jobs, err := service.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
		Worker: event.Worker{Name: "w", Boot: "B"}})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("claim: %d jobs, %v", len(jobs), err)
	}
	j := jobs[0]
	if _, err := service.Apply(t.Context(), actor, j.ID, commands.Succeed{Token: j.Token}); err != nil {
		t.Fatal(err)
	}
	return path, store
}

func enqueue(t *testing.T, store *ledger.Store, payloads ...string) {
	t.Helper()
	service := &commands.Service{Store: store}
	for _, payload := range payloads {
		e := commands.Enqueue{Queue: "mail", Payload: []byte(payload)}
		if _, err := service.Enqueue(t.Context(), actor, e); err != nil {
			t.Fatal(err)
		}
	}
}

// verified checks the ledger at path as 'jobledger verify' does, and returns the kinds of its events.
func verified(t *testing.T, path string) (kinds string) {
	t.Helper()
	store, err := ledger.OpenExisting(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var names []string
	err = store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		if err != nil {
			return err
		}
		if len(v.Findings) > 0 {
			t.Errorf("%s: %+v", path, v.Findings)
		}
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			names = append(names, e.Kind().String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// wantFiles checks which files are in the folder of path.
func wantFiles(t *testing.T, path string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), "-wal") && !strings.HasSuffix(entry.Name(), "-shm") {
			got = append(got, entry.Name())
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

const fourEvents = "enqueued enqueued claimed succeeded"

func TestBackupThenRestore(t *testing.T) {
	t.Parallel()
	path, store := newLedger(t)
	backup := filepath.Join(t.TempDir(), "jobs.bak")
	copied, err := files.Backup(t.Context(), store, backup)
	if err != nil || copied.Events != 4 || copied.Bytes == 0 {
		t.Fatalf("Backup: %+v, %v", copied, err)
	}
	if got := verified(t, backup); got != fourEvents {
		t.Errorf("the backup holds %s", got)
	}
	if _, err := files.Backup(t.Context(), store, backup); !errors.Is(err, files.ErrExists) {
		t.Errorf("a second backup: %v, want ErrExists", err)
	}
	wantFiles(t, backup, "jobs.bak")

	enqueue(t, store, "later")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	later := func() time.Time { return time.Now().Add(time.Hour) } // a time at which the worker counts as gone
	o := files.RestoreOptions{Backup: backup, Ledger: path, Actor: actor, Now: later}
	_, err = files.Restore(t.Context(), o)
	loss, ok := errors.AsType[*files.LossError](err)
	if !ok || loss.Lost.Events != 1 || loss.Lost.Enqueued != 1 {
		t.Fatalf("Restore without Force: %v, want a LossError of 1 event", err)
	}
	wantFiles(t, path, "jobs.db")

	o.Force = true
	restored, err := files.Restore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r := restored; !r.Compared || r.Lost.Events != 1 || r.Events != 4 || r.Jobs != 2 || r.Queued != 1 {
		t.Errorf("Restore: %+v", r)
	}
	if got := verified(t, path); got != fourEvents+" restored" {
		t.Errorf("the ledger holds %s", got)
	}
	if got := verified(t, restored.Kept); got != fourEvents+" enqueued" {
		t.Errorf("the kept ledger holds %s", got)
	}
	wantFiles(t, path, "jobs.db", filepath.Base(restored.Kept))
	is, was := identity(t, path), identity(t, backup)
	if is.ID != was.ID || is.ID == "" || was.Restores != 0 || is.Restores != 1 {
		t.Errorf("restored, the ledger is %+v; the backup is %+v", is, was)
	}
}

func identity(t *testing.T, path string) (is projection.Identity) {
	t.Helper()
	store, err := ledger.OpenExisting(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	err = store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		is, err = projection.IdentityOf(t.Context(), tx, math.MaxInt64)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func TestRestoreIntoAFreePath(t *testing.T) {
	from, store := newLedger(t)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "new.db")
	restored, err := files.Restore(t.Context(), files.RestoreOptions{Backup: from, Ledger: path, Actor: actor})
	if err != nil || restored.Kept != "" || restored.Compared {
		t.Fatalf("Restore: %+v, %v", restored, err)
	}
	if got := verified(t, path); got != fourEvents+" restored" {
		t.Errorf("the ledger holds %s", got)
	}
	wantFiles(t, path, "new.db")
}

func TestRestoreErrors(t *testing.T) {
	path, store := newLedger(t)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	text := filepath.Join(folder, "text")
	if err := os.WriteFile(text, []byte("no ledger"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "new.db-journal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, x := range map[string]struct {
		ctx            context.Context
		backup, ledger string
		want           error
	}{
		"the backup is missing":   {t.Context(), filepath.Join(folder, "none"), path, files.ErrNoBackup},
		"the backup is a text":    {t.Context(), text, path, files.ErrNoBackup},
		"the ledger is a text":    {t.Context(), path, text, files.ErrForeign},
		"the same file":           {t.Context(), path, path, files.ErrSameFile},
		"a -journal file is left": {t.Context(), path, filepath.Join(folder, "new.db"), files.ErrLeftover},
		"the context is over":     {cancelled, path, filepath.Join(folder, "other.db"), context.Canceled},
		"the folder is not there": {t.Context(), path, filepath.Join(folder, "none", "jobs.db"), os.ErrNotExist},
	} {
		o := files.RestoreOptions{Backup: x.backup, Ledger: x.ledger, Actor: actor, Force: true}
		_, err := files.Restore(x.ctx, o)
		if !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	wantFiles(t, text, "text", "new.db-journal")
}

// history opens an exported history that a released version has written.
func history(t *testing.T) *io.SectionReader {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "..", "testdata", "history", "v1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return io.NewSectionReader(file, 0, info.Size())
}

func TestImportIntoAFileAndIntoALedger(t *testing.T) {
	store := ledgertest.Open(t)
	fresh := filepath.Join(t.TempDir(), "new.db")
	for name, dsn := range map[string]string{"no file": fresh, "an empty ledger": store.DSN()} {
		o := files.ImportOptions{DSN: dsn, From: "v1.jsonl", Actor: actor}
		loaded, err := files.Import(t.Context(), history(t), o)
		if err != nil || loaded.Events != 61 {
			t.Fatalf("%s: %+v, %v", name, loaded, err)
		}
		got := verified(t, dsn)
		if strings.Count(got, " ") != 62 || !strings.HasSuffix(got, " imported queue_paused") {
			t.Errorf("%s: it holds %s", name, got)
		}
		if _, err := files.Import(t.Context(), history(t), o); !errors.Is(err, load.ErrNotEmpty) {
			t.Errorf("%s: a second import: %v, want ErrNotEmpty", name, err)
		}
	}
	wantFiles(t, fresh, "new.db")
}

func TestImportErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.db")
	for text, want := range map[string]error{"": files.ErrEmpty, "hello\n": files.ErrBadHistory} {
		content := io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
		_, err := files.Import(t.Context(), content, files.ImportOptions{DSN: path, From: "x", Actor: actor})
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	cut := io.NewSectionReader(history(t), 0, 3000)
	_, err := files.Import(t.Context(), cut, files.ImportOptions{DSN: path, From: "x", Actor: actor})
	if !errors.Is(err, files.ErrBadHistory) || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("a history that is cut off: %v", err)
	}
	wantFiles(t, path)
}

func TestReplayUntilAPos(t *testing.T) {
	t.Parallel()
	_, store := newLedger(t)
	folder := t.TempDir()
	for until, want := range map[int64]string{
		0: "imported",
		2: "enqueued enqueued imported",
		3: "enqueued enqueued claimed imported",
		4: fourEvents + " imported",
	} {
		path := filepath.Join(folder, "copy.db")
		o := files.ReplayOptions{Into: path, Until: until, At: time.Now(), Actor: actor}
		done, err := files.Replay(t.Context(), store, o)
		if err != nil || done.Events != until || len(done.Findings) > 0 {
			t.Fatalf("Replay until %d: %+v, %v", until, done, err)
		}
		if got := verified(t, path); got != want {
			t.Errorf("the copy until %d holds %s, want %s", until, got, want)
		}
		if until == 3 && (done.Tally["mail"][event.Queued] != 1 || done.Tally["mail"][event.ClaimedState] != 1) {
			t.Errorf("the copy until 3 has %v", done.Tally)
		}
		if _, err = files.Replay(t.Context(), store, o); !errors.Is(err, files.ErrExists) {
			t.Errorf("a second replay: %v, want ErrExists", err)
		}
		wantFiles(t, path, "copy.db")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
