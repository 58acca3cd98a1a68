package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// onlyReading is what an auditor asks of a ledger on a medium that cannot be written. JOB is one of its jobs.
var onlyReading = []string{"list", "status", "show JOB", "history JOB", "why JOB", "events", "verify",
	"export"}

// readOnly mounts the folder place read-only, and returns what each command printed there, by its words.
func (s site) readOnly(commands []string, env string) map[string]exit {
	s.Helper()
	var script strings.Builder
	script.WriteString("mount --bind place place && mount -o remount,bind,ro place || exit 9\n")
	for i, c := range commands {
		fmt.Fprintf(&script, "env %s jobledger %s >out%d 2>err%[3]d; echo $? >code%[3]d\n", env, c, i)
	}
	s.inNamespace(script.String())
	ends := make(map[string]exit)
	for i, c := range commands {
		var e exit
		for name, into := range map[string]*string{"out": &e.stdout, "err": &e.stderr} {
			text, err := os.ReadFile(s.path(fmt.Sprint(name, i)))
			s.ok(err)
			*into = string(text)
		}
		code, err := os.ReadFile(s.path(fmt.Sprint("code", i)))
		s.ok(err)
		_, err = fmt.Sscan(string(code), &e.code)
		s.ok(err)
		ends[c] = e
	}
	return ends
}

// A ledger on a read-only disk: a backup, one that was closed, one whose last process was killed (with its
// -shm file and without), and one of an older version.
func TestLedgerOnReadOnlyDiskIsRead(t *testing.T) {
	reading := ledgertest.Sample(onlyReading, 4)
	for name, test := range map[string]struct {
		prepare func(s site)
		note    string
	}{
		"a backup": {func(s site) {
			s.run("backup", "place/copy.db")
			s.ok(os.Rename(s.path("place/copy.db"), s.path("place/jobledger.db")))
		}, "is read without locks"},
		"closed": {func(s site) { s.ok(os.Rename(s.path(db), s.path("place/jobledger.db"))) },
			"is read without locks"},
		"with a -wal and a -shm file": {func(s site) { s.leftIn("place", "-wal", "-shm") }, ""},
		"with a -wal file alone":      {func(s site) { s.leftIn("place", "-wal") }, "is read in a copy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.mkdir("place")
			s.mkdir("tmp")
			job := s.enqueue("x", "--delay", "1h")
			test.prepare(s)
			want := 1
			if strings.HasPrefix(name, "with") {
				want = 4
			}
			before := s.everythingIn("place")
			var commands []string
			for _, c := range append(reading, "enqueue -q mail y", "work -q mail --drain -- true", "sweep") {
				commands = append(commands, strings.ReplaceAll(c, "JOB", job)+" --db place/jobledger.db")
			}
			for i, c := range commands {
				verb, rest, _ := strings.Cut(strings.TrimSuffix(c, " --db place/jobledger.db"), " ")
				commands[i] = verb + " --db place/jobledger.db " + rest
			}
			count := "list --db place/jobledger.db --json"
			const doctor = "doctor --db place/jobledger.db --json"
			ends := s.readOnly(append(commands, count, doctor), "TMPDIR=tmp")
			if said := ends[doctor].stdout; strings.Contains(said, `"D14"`) || !strings.Contains(said, `"D08"`) {
				t.Errorf("doctor: %s%s", said, ends[doctor].stderr)
			}
			for i, c := range commands {
				end, reads := ends[c], i < len(reading)
				switch {
				case reads && (end.code != cli.ExitOK || !strings.Contains(end.stderr, test.note)):
					t.Errorf("%s: exit code %d\n%s", c, end.code, end.stderr)
				case !reads && !strings.HasPrefix(c, "sweep") && (end.code != cli.ExitUnexpected ||
					!strings.Contains(end.stderr, "may only be read: write ") ||
					!strings.Contains(end.stderr, "read-only file system")):
					t.Errorf("%s: exit code %d\n%s", c, end.code, end.stderr)
				}
			}
			if got := strings.Count(ends[count].stdout, "\n"); got != want {
				t.Errorf("it has %d jobs, want %d\n%s", got, want, ends[count].stderr)
			}
			if after := s.everythingIn("place"); after != before {
				t.Errorf("the folder has changed: %s, before it was %s", after, before)
			}
			if left, err := os.ReadDir(s.path("tmp")); err != nil || len(left) > 0 {
				t.Errorf("a temporary file is left: %v, %v", left, err)
			}
		})
	}
}

// leftIn leaves the ledger in a folder, as a process does that is killed after three jobs, and these files
// with it.
func (s site) leftIn(folder string, suffixes ...string) {
	s.Helper()
	s.left(3)
	for _, suffix := range append(suffixes, "") {
		s.ok(os.Rename(s.path(db+suffix), s.path(filepath.Join(folder, "jobledger.db"+suffix))))
	}
}

// everythingIn lists a folder: names, sizes and times.
func (s site) everythingIn(folder string) string {
	s.Helper()
	out, err := exec.Command("ls", "-la", "--time-style=full-iso", s.path(folder)).Output()
	s.ok(err)
	_, files, _ := strings.Cut(string(out), "..\n")
	return files
}

// A ledger of an older program on a read-only disk cannot be migrated there. A copy is.
func TestOlderLedgerOnReadOnlyDiskIsRead(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := site{TB: t, dir: t.TempDir()}
	s.mkdir("place")
	place := site{TB: t, dir: s.path("place")}
	place.unpack("../../testdata/schemas/sqlite-0015.tar.gz")
	names, err := filepath.Glob(place.path("*.db"))
	if s.ok(err); len(names) == 0 {
		t.Fatal("there is no ledger")
	}
	name := "place/" + filepath.Base(names[0])
	before := s.everythingIn("place")
	for c, end := range s.readOnly([]string{"verify --db " + name, "list --db " + name}, "A=b") {
		if end.code != cli.ExitOK || !strings.Contains(end.stderr, "is read in a copy") {
			t.Errorf("%s: exit code %d\n%s", c, end.code, end.stderr)
		}
	}
	if after := s.everythingIn("place"); after != before {
		t.Errorf("the folder has changed: %s, before it was %s", after, before)
	}
}

// If there is no room for a copy, the answer says what to copy, and does not say "try again".
func TestLedgerOnReadOnlyDiskWithoutRoomForCopy(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.mkdir("place")
	s.mkdir("small")
	s.leftIn("place", "-wal")
	got := s.inNamespace("mount --bind place place && mount -o remount,bind,ro place && " +
		"mount -t tmpfs -o size=64k none small || exit 9\n" +
		"TMPDIR=small jobledger list --db place/jobledger.db 2>&1; echo \"list $?\"")
	if !strings.Contains(got, "list 1\n") || !strings.Contains(got, "jobledger.db-wal") {
		t.Errorf("got %s", got)
	}
}

// A user with read permission only reads while a worker runs, sees what it commits, and leaves no file.
func TestReaderWithoutWritePermissionSeesLiveLedger(t *testing.T) {
	ledgertest.Slow(t)
	if os.Geteuid() != 0 {
		t.Skip("it takes two users")
	}
	t.Parallel()
	s := asUnprivileged(t)
	s.ok(os.Chown(s.dir, 0, 0))
	s.ok(os.Chmod(s.dir, 0o755))
	owner := func(words ...string) *exec.Cmd {
		cmd := s.nobodys(words...)
		cmd.SysProcAttr = nil
		return cmd
	}
	job := s.outcomeOf(owner("enqueue", "-q", "mail", "x")).stdout
	s.chmod("jobs.db", 0o644)
	reads := func(want int) {
		t.Helper()
		for _, words := range [][]string{{"list", "--json"}, {"verify"}, {"show", job}, {"export"}} {
			end := s.outcomeOf(s.nobodys(words...))
			if end.code != cli.ExitOK || words[0] == "list" && strings.Count(end.stdout, "{\"id\"") != want {
				t.Errorf("%s: exit code %d, %q, want %d jobs\n%s", words[0], end.code, end.stdout, want, end.stderr)
			}
		}
		if end := s.outcomeOf(s.nobodys("enqueue", "-q", "mail", "y")); end.code != cli.ExitUnexpected ||
			!strings.Contains(end.stderr, "may only be read") {
			t.Errorf("enqueue: exit code %d\n%s", end.code, end.stderr)
		}
		entries, err := os.ReadDir(s.dir)
		s.ok(err)
		for _, entry := range entries {
			if info, err := entry.Info(); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
				t.Errorf("%s is of user %d, %v", entry.Name(), info.Sys().(*syscall.Stat_t).Uid, err)
			}
		}
	}
	reads(1) // without locks
	w := s.start(owner("work", "-q", "mail", "--", "true"))
	s.eventually("the job has succeeded", func() bool {
		return strings.Contains(s.outcomeOf(owner("show", job, "--json")).stdout, `"state":"succeeded"`)
	})
	if end := s.outcomeOf(owner("enqueue", "-q", "later", "--delay", "1h", "x")); end.code != cli.ExitOK {
		t.Fatalf("%d: %s", end.code, end.stderr)
	}
	reads(2) // with the -wal file of the worker
	w.signal(syscall.SIGTERM)
	w.wantExit(cli.ExitOK)
	reads(2)
}
