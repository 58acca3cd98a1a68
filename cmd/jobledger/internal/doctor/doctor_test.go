package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
	"jobledger/projection/keyframe"
)

// newLedger creates a ledger with one job, in a folder that only its owner can access.
func newLedger(t *testing.T) (path string) {
	t.Helper()
	ledgertest.OfSQLite(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "jobs.db")
	store := ledgertest.OpenAt(t, path)
	_, err := (&commands.Service{Store: store}).Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func examine(t *testing.T, path string) Report {
	t.Helper()
	r, err := Examine(t.Context(), path, Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestExamineHealthyLedger(t *testing.T) {
	path := newLedger(t)
	r := examine(t, path)
	if len(r.Findings) > 0 || r.Ledger != path || r.Events != 1 || r.Schema == 0 ||
		!strings.HasPrefix(r.Engine, "SQLite ") {
		t.Errorf("got %+v", r)
	}
	err := ledgertest.OpenAt(t, path).Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		if len(v.Findings) > 0 {
			t.Errorf("verify: %+v", v.Findings)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestExamineKeyframes: a sweep is advised where the last keyframe is far behind, and not after it.
func TestExamineKeyframes(t *testing.T) {
	path := newLedger(t)
	maxSinceKeyframe = 0
	defer func() { maxSinceKeyframe = 100_000 }()
	if r := examine(t, path); len(r.Findings) != 1 || r.Findings[0].Code != CodeKeyframes ||
		!strings.HasPrefix(r.Findings[0].Seen, "1 event came after the last keyframe") {
		t.Errorf("without keyframes: %+v", r.Findings)
	}
	store := ledgertest.OpenAt(t, path)
	if added, err := keyframe.Extend(t.Context(), store, 1); err != nil || added != 1 {
		t.Fatalf("%d keyframes, %v", added, err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if r := examine(t, path); len(r.Findings) > 0 {
		t.Errorf("with keyframes: %+v", r.Findings)
	}
}

func TestExamineDamagedLedger(t *testing.T) {
	path := newLedger(t)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 4096; i < len(file); i++ { // all but the first page
		file[i] = 0xa5
	}
	if err := os.WriteFile(path, file, 0o666); err != nil {
		t.Fatal(err)
	}
	r := examine(t, path)
	var codes []string
	for _, f := range r.Findings {
		codes = append(codes, f.Code)
		if f.Seen == "" || f.Remedy == "" {
			t.Errorf("incomplete: %+v", f)
		}
	}
	if !slices.Contains(codes, CodeWritable) || !slices.Contains(codes, CodeUnreadable) {
		t.Errorf("got %+v", r.Findings)
	}
	if n := r.Problems(); n < 2 || r.Findings[0].Severity != Problem || r.Findings[n-1].Severity != Problem {
		t.Errorf("%d problems, which do not come first: %+v", n, r.Findings)
	}
}

func TestExamineWithoutLedger(t *testing.T) {
	if _, err := Examine(t.Context(), filepath.Join(t.TempDir(), "none.db"), Options{}); err == nil {
		t.Error("no error")
	}
}

func TestFileSystemFindings(t *testing.T) {
	type place = ledger.FileSystem
	for name, test := range map[string]struct {
		place   place
		allowed bool
		want    string
	}{
		"nothing known":     {place{}, false, ""},
		"all is well":       {place{Known: true, Free: 1 << 40}, false, ""},
		"little space":      {place{Known: true, Free: 1 << 20}, false, "D08 problem"},
		"no space for two":  {place{Known: true, Free: 80 << 20}, false, "D08 advice"},
		"no files":          {place{Known: true, Free: 1 << 40, NoFiles: true}, false, "D08 problem"},
		"read-only":         {place{Known: true, ReadOnly: true}, false, "D08 problem"},
		"a network":         {place{Known: true, Free: 1 << 40, Network: "NFS"}, false, "D07 problem"},
		"a network, wanted": {place{Known: true, Free: 1 << 40, Network: "NFS"}, true, "D07 advice"},
	} {
		d := &examination{Report: Report{Ledger: "/x/jobs.db"}, real: "/x/jobs.db", Options: Options{Now: time.Now}}
		d.fileSystem(test.place, 100<<20, test.allowed)
		got := ""
		for _, f := range d.Findings {
			got += f.Code + " " + string(f.Severity)
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q: %+v", name, got, test.want, d.Findings)
		}
	}
	here := ledger.FileSystemOf(t.TempDir())
	if runtime.GOOS == "linux" && (!here.Known || here.Free == 0 || here.Network != "") {
		t.Errorf("got %+v", here)
	}
}

// These states are hard to produce on the server of a test.
// TestServiceFindings: units, programs and rights of a system whose root is a folder.
func TestServiceFindings(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(root, "jobs.db")
	if err := os.Rename(newLedger(t), path); err != nil {
		t.Fatal(err)
	}
	want := func(what string, parts ...string) {
		t.Helper()
		r, err := Examine(t.Context(), path, Options{Root: root})
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, f := range r.Findings {
			if f.Code == CodeUnits || f.Code == CodeUnitsUser || os.Getuid() == 0 && f.Code == CodeOwner {
				found = append(found, f.Code+" "+string(f.Severity)+" "+f.Seen+" > "+f.Remedy)
			}
		}
		if len(found) != len(parts) {
			t.Errorf("%s: %q", what, found)
			return
		}
		for i, part := range parts {
			if !strings.Contains(found[i], part) {
				t.Errorf("%s: %q lacks %q", what, found[i], part)
			}
		}
	}
	want("no units are installed")
	write("usr/lib/systemd/system/jobledger-worker@.service", "", 0o600)
	write("etc/jobledger/work.d/mail", "", 0o755)
	want("the units have another ledger")
	write("etc/jobledger/env", "JOBLEDGER_DB=/jobs.db\n", 0o600)
	me := strconv.Itoa(os.Getuid())
	want("no user", "D39 problem the units' user, jobledger, does not exist",
		"D38 advice /etc/jobledger/work.d/mail is for the jobs of mail, and the unit jobledger-worker@mail is not "+
			"enabled > systemctl enable --now jobledger-worker@mail")
	write("etc/passwd", "root:x:0:0::/:\njobledger:x:"+me+":77777::/:\n", 0o600)
	const wants = "etc/systemd/system/multi-user.target.wants/"
	write(wants+"jobledger-worker@mail.service", "", 0o600)
	write(wants+"jobledger-serve.service", "", 0o600)
	want("all is well")
	write(wants+"jobledger-worker@sms.service", "", 0o600)
	if err := os.Chmod(filepath.Join(root, "etc/jobledger/work.d/mail"), 0o644); err != nil {
		t.Fatal(err)
	}
	want("nothing to run", "D38 problem /etc/jobledger/work.d/mail may not be executed, so the unit "+
		"jobledger-worker@mail does not start > chmod 755",
		"D38 problem the unit jobledger-worker@sms is enabled, and there is no /etc/jobledger/work.d/sms")
	if err := os.RemoveAll(filepath.Join(root, "etc/jobledger/work.d")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, wants)); err != nil {
		t.Fatal(err)
	}
	write("etc/passwd", "jobledger:x:77777:77777::/:\n", 0o600)
	for _, name := range []string{"jobs.db.bell", "jobs.db.logs"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() == 0 { // as the units have made them
			if err := os.Chown(filepath.Join(root, name), 77777, 77777); err != nil {
				t.Fatal(err)
			}
		}
	}
	want("made by another user", "D39 problem the units run as jobledger, who may not write "+root,
		"jobs.db > chown jobledger:jobledger ")
}

func TestServerFindings(t *testing.T) {
	type facts = ledger.ServerFacts
	type backends = []ledger.ServerBackend
	well := ledger.ServerFacts{MayWrite: true, Most: 100, Connections: 10, Schema: 1, Newest: 1}
	idle := ledger.ServerBackend{PID: 7, Program: "psql", State: "idle in transaction", Since: time.Hour}
	for name, test := range map[string]struct {
		change func(f *facts)
		want   string
	}{
		"well":  {func(*facts) {}, ""},
		"older": {func(f *facts) { f.Newest = 2 }, "D16 advice its schema is version 1"},
		"clock ahead": {
			func(f *facts) { f.ClockSkew = -time.Minute },
			"D19 advice this machine's clock is 1m ahead of the server's",
		},
		"clock behind": {
			func(f *facts) { f.ClockSkew = time.Minute },
			"D19 advice this machine's clock is 1m behind the server's",
		},
		"clock, slow net": {func(f *facts) { f.ClockSkew, f.Tolerance = 3*time.Second, 2*time.Second }, ""},
		"standby":         {func(f *facts) { f.Standby = true }, "D27 advice the server is a standby"},
		"may only read": {
			func(f *facts) { f.MayWrite, f.User = false, "ada" },
			"D27 advice ada may only read this ledger",
		},
		"waits": {func(f *facts) { f.Writers = backends{idle} }, ""},
		"writes for long": {func(f *facts) {
			f.Writers = backends{{PID: 7, State: "active", Since: time.Hour, Holds: true}}
		}, "D25 advice pid 7 has held the write lock for 1h"},
		"writes": {func(f *facts) {
			f.Writers = backends{{PID: 7, State: "active", Since: time.Second, Holds: true}}
		}, ""},
		"idle session": {func(f *facts) {
			f.Writers = backends{{PID: 7, State: "idle", Since: time.Hour, Holds: true}}
		}, "D25 problem pid 7 has held the write lock for 1h, and 0 others wait; it is idle"},
		"hidden": {func(f *facts) {
			f.Writers, f.User = backends{{PID: 7, User: "bob", Since: 2 * time.Second, Holds: true}}, "ada"
		}, "D25 advice pid 7 of bob has held the write lock for 2s"},
		"hidden, in motion": {func(f *facts) {
			f.Writers = backends{{PID: 7, User: "bob", Holds: true}}
		}, ""},
		"lock of older programs": {func(f *facts) {
			f.Writers = backends{{PID: 7, User: "eve", Holds: true, Older: true}}
		}, "D25 advice pid 7 of eve holds the lock of programs older than schema 15"},
		"prepared": {func(f *facts) {
			f.Writers = backends{{Program: "a prepared transaction", Holds: true}}
		}, "D25 problem a prepared transaction holds the write lock"},
		"keeps vacuum": {
			func(f *facts) { f.Holding = backends{idle} },
			"D26 problem psql (pid 7) is in a transaction since 1h (idle in transaction)",
		},
		"reads": {func(f *facts) { f.Holding = backends{{Since: time.Minute}} }, ""},
		"slot": {
			func(f *facts) { f.Slots = []string{"the replication slot old"} },
			"D26 problem the replication slot old keeps vacuum from",
		},
		"few connections": {
			func(f *facts) { f.Connections = 95 },
			"D28 advice 95 of the server's 100 connections are taken",
		},
		"many to freeze": {
			func(f *facts) { f.MostXIDs = 900_000_000 },
			"D28 problem 900 million transactions have not been frozen",
		},
		"unsafe, no vacuum": {
			func(f *facts) { f.NoAutovacuum = true },
			"D26 problem the server runs with autovacuum = off",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := well
			test.change(&f)
			d := &examination{Report: Report{Ledger: "postgres://x"}, Options: Options{Now: time.Now}}
			d.server(f)
			if problems := d.Problems(); (problems > 0) != strings.Contains(test.want, "problem") {
				t.Errorf("%d problems", problems)
			}
			got := ""
			for _, found := range d.Findings {
				got += found.Code + " " + string(found.Severity) + " " + found.Seen
			}
			if got == "" != (test.want == "") || !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRemedyOfUnreadableFolder(t *testing.T) {
	d := &examination{Report: Report{Ledger: "/x/jobs.db"}, real: "/x/jobs.db", Options: Options{Now: time.Now}}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: "/x/jobs.db.logs", Err: syscall.EACCES}, "run doctor as the owner"},
		{&fs.PathError{Op: "readdirent", Path: "/x/jobs.db.logs", Err: syscall.EIO},
			"see why /x/jobs.db.logs cannot"},
		{ledger.ErrDamaged, "restore a backup"},
	} {
		if got := d.remedy(tt.err); !strings.Contains(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.err, got, tt.want)
		}
	}
}
