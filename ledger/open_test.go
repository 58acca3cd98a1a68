//go:build unix

package ledger_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/schema"
)

func TestOpenNewLedgerByManyProcesses(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.New(t)
	const processes = 16
	var children []*exec.Cmd
	var starts []io.Closer
	outputs := make([]bytes.Buffer, processes)
	for i := range processes {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), "LEDGER_TEST_OPEN="+dsn)
		child.Stderr = &outputs[i]
		start, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		children, starts = append(children, child), append(starts, start)
	}
	for _, start := range starts {
		_ = start.Close()
	}
	for i, child := range children {
		if err := child.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, &outputs[i])
		}
	}
	got := actors(t, openAt(t, dsn))
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != processes {
		t.Errorf("events of %d processes, want %d", n, processes)
	}
}

// folder returns the names of the files in dir with their contents and permissions.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = info.Mode().String()
		if entry.Type().IsRegular() {
			content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[entry.Name()] += " " + string(content)
		}
	}
	return files
}

func TestOpenMakesFilesForOwnerOnly(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := open(t)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	wantActors(t, s, "a")
	for _, name := range []string{"jobs.db", "jobs.db-wal", "jobs.db-shm"} {
		info, err := os.Stat(filepath.Join(filepath.Dir(s.Path()), name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, want 0600", name, info.Mode())
		}
	}
}

// A file that may shrink says so from its first page on.
func TestOpenNewLedgerMayShrink(t *testing.T) {
	ledgertest.OfSQLite(t)
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := ledgertest.OpenAt(t, path)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var mode int
	if err := db.QueryRow(`PRAGMA auto_vacuum`).Scan(&mode); err != nil || mode != 2 {
		t.Errorf("auto_vacuum: got %d, want 2, incremental (%v)", mode, err)
	}
}

// The power failed while SQLite wrote "WAL mode" into the header, and the rollback journal took it back, but
// the -wal file is there already. The ledger made from that must say WAL mode: its own -wal file, which a
// later power failure leaves, would be taken for a stray one.
func TestOpenCompletesCreationAfterPowerFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	db := plain(t, path)
	mustExec(t, db, fmt.Sprintf(`PRAGMA application_id = %d`, schema.ApplicationID))
	must(t, db.Close())
	must(t, os.WriteFile(path+"-wal", make([]byte, 32), 0o600))
	s := openAt(t, path)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "first") })
	checkpoint := plain(t, path)
	mustExec(t, checkpoint, `PRAGMA wal_checkpoint`) // what the -wal file has is in the database, and stays
	must(t, checkpoint.Close())
	later := filepath.Join(t.TempDir(), "jobs.db")
	for _, suffix := range []string{"", "-wal"} {
		run(t, "cp", path+suffix, later+suffix)
	}
	wantActors(t, openAt(t, later), "first")
}

func TestOpenRefusesForeignFilesUnchanged(t *testing.T) {
	both := func(want error) []error { return []error{want, want} }
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want []error // of Open and of OpenExisting; nil: no error
	}{
		"another program's database": {func(t *testing.T, path string) {
			db := plain(t, path)
			mustExec(t, db, `CREATE TABLE events (pos INTEGER); INSERT INTO events VALUES (1)`)
			_ = db.Close()
		}, both(ledger.ErrNotALedger)},
		"another program's database with an application id": {func(t *testing.T, path string) {
			db := plain(t, path)
			mustExec(t, db, `PRAGMA application_id = 1196444487; CREATE TABLE t (x)`)
			_ = db.Close()
		}, both(ledger.ErrNotALedger)},
		"another program's database in use": {func(t *testing.T, path string) {
			db := plain(t, path)
			mustExec(t, db, `PRAGMA journal_mode = wal; CREATE TABLE t (x); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)`)
		}, both(ledger.ErrNotALedger)},
		"a text file":      {file("hello\n"), both(ledger.ErrNotALedger)},
		"a long text file": {file(strings.Repeat("all work and no play\n", 1000)), both(ledger.ErrNotALedger)},
		"a file of zeros":  {file(string(make([]byte, 8192))), both(ledger.ErrNotALedger)},
		"half a header":    {file("SQLite format 3\x00"), both(ledger.ErrNotALedger)},
		"a directory": {func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) },
			both(ledger.ErrNotALedger)},
		"a named pipe": {func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) },
			both(ledger.ErrNotALedger)},
		"a dangling link": {func(t *testing.T, path string) { must(t, os.Symlink(path+".gone", path)) },
			[]error{fs.ErrNotExist, ledger.ErrNoLedger}},
		"an empty file": {file(""), []error{nil, ledger.ErrNoLedger}},
		"nothing":       {func(*testing.T, string) {}, []error{nil, ledger.ErrNoLedger}},
		"a newer schema": {func(t *testing.T, path string) {
			must(t, ledgertest.OpenAt(t, path).Close())
			db := plain(t, path)
			mustExec(t, db, `PRAGMA user_version = 9999`)
			_ = db.Close()
		}, both(ledger.ErrNewerSchema)},
		"a newer schema in a copy": {func(t *testing.T, path string) {
			must(t, ledgertest.OpenAt(t, path).Close())
			db := plain(t, path)
			mustExec(t, db, `PRAGMA user_version = 9999; PRAGMA journal_mode = delete`)
			_ = db.Close()
		}, both(ledger.ErrNewerSchema)},
	} {
		t.Run(name, func(t *testing.T) {
			for i, open := range []func(string) (*ledger.Store, error){
				func(path string) (*ledger.Store, error) { return ledger.Open(t.Context(), path) },
				func(path string) (*ledger.Store, error) { return ledger.OpenExisting(t.Context(), path) },
			} {
				path := filepath.Join(t.TempDir(), "jobs.db")
				c.make(t, path)
				before := folder(t, filepath.Dir(path))
				s, err := open(path)
				if err == nil {
					must(t, s.Close())
				}
				if c.want[i] == nil && err == nil {
					continue
				}
				if c.want[i] == nil || !errors.Is(err, c.want[i]) || !strings.Contains(err.Error(), path) {
					t.Errorf("%d: got %v, want %v and the path", i, err, c.want[i])
				}
				if after := folder(t, filepath.Dir(path)); !maps.Equal(after, before) {
					t.Errorf("%d: the folder was changed: %q, before %q", i, slices.Collect(maps.Keys(after)),
						slices.Collect(maps.Keys(before)))
				}
			}
		})
	}
}

func file(content string) func(*testing.T, string) {
	return func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte(content), 0o600)) }
}

func TestOpenMigratesOlderSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	steps, err := schema.SQLite()
	must(t, err)
	db := plain(t, path)
	mustExec(t, db,
		fmt.Sprintf(`PRAGMA application_id = %d; PRAGMA journal_mode = wal; %s; PRAGMA user_version = 1`,
			schema.ApplicationID, steps[0].SQL))
	mustExec(t, db, `INSERT INTO names VALUES (1, 'cli:ann@host');
		INSERT INTO workers VALUES (1, 'w', 'b', 'h', 1, '');
		INSERT INTO events VALUES
		(1, 1, 1, 1, 1000000, 1, NULL, '01KDXYZAF80000000000000001', NULL, NULL, 1, NULL,
 '{"queue":"mail","max_attempts":5}'),
		(2, 1, 2, 2, 2000000, 1, 1, '01KDXYZAF80000000000000002', 1, 1, 2, NULL, '{"lease_until":62000000}'),
		(3, 1, 3, 3, 3000000, 1, 1, NULL, 1, 2, 3, NULL, '{"lease_until":70000000,"note":"half"}')`)
	must(t, db.Close())
	s := openAt(t, path)
	if got := s.SchemaVersion(); got != len(steps) {
		t.Errorf("schema version %d, want %d", got, len(steps))
	}
	want := []event.Body{
		&event.Enqueued{Queue: "mail", MaxAttempts: 5, RunAt: event.FromMicros(1000000)},
		&event.Claimed{LeaseUntil: event.FromMicros(62000000)},
		&event.Heartbeat{LeaseUntil: event.FromMicros(70000000), Note: "half"},
	}
	for i, e := range events(t, s, ledger.Filter{}) {
		if !reflect.DeepEqual(e.Body, want[i]) {
			t.Errorf("event %d is read as %+v, want %+v", e.Pos, e.Body, want[i])
		}
	}
	read(t, s, func(tx *ledger.Tx) error {
		if problems, err := tx.Guards(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("guards: %q, %v", problems, err)
		}
		return nil
	})
}

func TestOpenTakesPathLiterally(t *testing.T) {
	t.Parallel()
	names := []string{"jobs.db", "a?b.db", "a?b&c", "a#b.db", "a%41.db", "a%.db", "a b.db", " ",
		"a&b=c;d.db", "日本–ü.db", `a\b'"c.db`, "file:x.db", "a+b.db", "-x"}
	for _, name := range names {
		for _, dsn := range []string{"%s", "sqlite:%s?sync=normal"} {
			if strings.Contains(dsn, "?") && strings.Contains(name, "?") {
				continue // options, if any, begin at the first question mark
			}
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			s, err := ledger.Open(t.Context(), fmt.Sprintf(dsn, path))
			if err != nil {
				t.Errorf("%q: %v", name, err)
				continue
			}
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
			wantActors(t, s, "a")
			if s.Path() != path {
				t.Errorf("%q: Path is %q", name, s.Path())
			}
			must(t, s.Close())
			if files := slices.Collect(maps.Keys(folder(t, dir))); len(files) != 1 || files[0] != name {
				t.Errorf("%q: the files are %q", name, files)
			}
			s, err = ledger.OpenExisting(t.Context(), path)
			if err != nil {
				t.Errorf("%q again: %v", name, err)
				continue
			}
			wantActors(t, s, "a")
			must(t, s.Close())
		}
	}
}

func TestOpenKeepsRelativePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := openAt(t, "jobs.db")
	t.Chdir(t.TempDir())
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	wantActors(t, s, "a")
	if real, err := filepath.EvalSymlinks(dir); err != nil || s.Path() != filepath.Join(real, "jobs.db") &&
		s.Path() != filepath.Join(dir, "jobs.db") {
		t.Errorf("path: got %s, want it in %s", s.Path(), dir)
	}
}

func TestOpenErrorsSayWhy(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.db")
	for dsn, want := range map[string]string{
		"":                                      "not the path of a file",
		"sqlite:":                               "not the path of a file",
		"sqlite:?sync=full":                     "not the path of a file",
		":memory:":                              "not the path of a file",
		"sqlite::memory:":                       "not the path of a file",
		path + "\x00":                           "not the path of a file",
		"postgres://me:secret@127.0.0.1:1/jobs": "cannot be reached",
		"postgresql://me:secret@127.0.0.1:1/jobs":           "cannot be reached",
		"postgres://me:secret@host/jobs?schema=Big":         "lower-case letters",
		"postgres://me:secret@host/jobs?sync=off":           "full or normal",
		"postgres://me:secret@host/jobs?listen=no":          "on or off",
		"postgres://me:secret@host/jobs?tcp_user_timeout=9": "milliseconds, 1000 to 3600000",
		"postgres://me:secret@host:%zz/jobs":                "not a URL",
		"postgres://me:secret@host:99999/jobs":              "invalid port",
		"sqlite:" + path + "?sync=off":                      "sync=full, sync=normal",
		"sqlite:" + path + "?sync=":                         "sync=full, sync=normal",
		"sqlite:" + path + "?mode=ro":                       "option mode=…",
		"sqlite:" + path + "?sync=full&x=1":                 "option x=…",
		"sqlite:" + path + "?network=refuse":                "network=allow",
		"sqlite:" + path + "?sync=normal&sync=full":         "option sync=normal,full",
		"sqlite:" + path + "?sync=%zz":                      "the options of",
		filepath.Join(dir, "no", "such", "jobs.db"):         "no such file or directory",
		"/dev/null": "a device",
	} {
		s, err := ledger.Open(t.Context(), dsn)
		if err == nil {
			_ = s.Close()
			t.Errorf("%q was opened", dsn)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %q, want something with %q", dsn, err, want)
		}
	}
	if files := folder(t, dir); len(files) != 0 {
		t.Errorf("files were made: %q", files)
	}
}

func TestOpenRefusesFolderWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("everything is permitted to root")
	}
	for _, there := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "jobs.db")
		if there {
			must(t, ledgertest.OpenAt(t, path).Close())
		}
		before := folder(t, dir)
		must(t, os.Chmod(dir, 0o500))
		s, err := ledger.Open(t.Context(), path)
		if err == nil {
			_ = s.Close()
			t.Errorf("opened; the file was there: %t", there)
		}
		must(t, os.Chmod(dir, 0o700))
		if after := folder(t, dir); !maps.Equal(after, before) {
			t.Errorf("the folder was changed: %q", after)
		}
	}
}

func TestOpenReadOnlyFileIsRead(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("everything is permitted to root")
	}
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := ledgertest.OpenAt(t, path)
	write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	must(t, s.Close())
	must(t, os.Chmod(path, 0))
	if s, err := ledger.Open(t.Context(), path); err == nil {
		_ = s.Close()
		t.Error("a file that may not be read was opened")
	}
	must(t, os.Chmod(path, 0o400))
	s = openAt(t, path)
	wantActors(t, s, "a")
	if err := s.Write(t.Context(), func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") }); err == nil {
		t.Error("a file that may not be written was written")
	}
	wantActors(t, s, "a")
}

func TestOpenFollowsLink(t *testing.T) {
	real, link := filepath.Join(t.TempDir(), "real.db"), filepath.Join(t.TempDir(), "link.db")
	must(t, os.Symlink(real, link))
	a := openAt(t, real)
	b := openAt(t, link)
	write(t, a, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
	write(t, b, func(tx *ledger.Tx) error { return note(t.Context(), tx, "b") })
	write(t, a, func(tx *ledger.Tx) error { return note(t.Context(), tx, "c") })
	wantActors(t, a, "a", "b", "c")
	wantActors(t, b, "a", "b", "c")
	if files := folder(t, filepath.Dir(link)); len(files) != 1 {
		t.Errorf("files next to the link: %d, want the link only", len(files))
	}

	other := ledgertest.OpenAt(t, filepath.Join(t.TempDir(), "other.db"))
	must(t, os.Remove(link))
	must(t, os.Symlink(other.Path(), link))
	if err := b.Write(t.Context(), func(*ledger.Tx) error { return nil }); !errors.Is(err, ledger.ErrReplaced) {
		t.Errorf("when the link leads elsewhere: got %v, want ErrReplaced", err)
	}
	must(t, os.Remove(link))
	must(t, os.Symlink(real, link))
	wantActors(t, b, "a", "b", "c")
}

func TestOpenSeveralStoresInOneProcess(t *testing.T) {
	dsn := ledgertest.New(t)
	a := openAt(t, dsn)
	for range 5 { // closing one store drops no lock of the others
		b := openAt(t, dsn)
		write(t, a, func(tx *ledger.Tx) error {
			must(t, b.Close())
			return note(t.Context(), tx, "a")
		})
	}
	wantActors(t, a, "a", "a", "a", "a", "a")
}
