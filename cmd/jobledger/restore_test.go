//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/schema"
)

// restoreSteps are the failpoints that only restore passes, in order.
var restoreSteps = []string{"copied", "draining", "drained", "found", "locked", "recorded", "kept", "cleared",
	"replaced"}

// ran runs a command and returns how it ended.
func (s site) ran(words ...string) exit {
	s.Helper()
	cmd := s.command(words...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	_ = cmd.Run()
	if cmd.ProcessState == nil {
		s.Fatalf("jobledger %s did not start", strings.Join(words, " "))
	}
	return exit{out.String(), said.String(), cmd.ProcessState.ExitCode(), false}
}

func (s site) wantRefused(code int, why string, words ...string) {
	s.Helper()
	if got := s.ran(words...); got.code != code || !strings.Contains(got.stderr, why) || got.stdout != "" {
		s.Errorf("jobledger %s: exit code %d, want %d\n%s%s", strings.Join(words, " "), got.code, code, got.stdout,
			got.stderr)
	}
}

// kept returns the paths of the ledgers that were replaced.
func (s site) kept() []string {
	s.Helper()
	names, err := filepath.Glob(s.path("jobledger.db.before-*"))
	if err != nil {
		s.Fatal(err)
	}
	return names
}

func (s site) tempFiles() []string {
	s.Helper()
	names, err := filepath.Glob(s.path(".*.db.*"))
	if err != nil {
		s.Fatal(err)
	}
	return names
}

// A ledger that another process has open is not replaced: no idle worker, stopped worker or reader may keep
// using the old file.
func TestRestoreRefusedWhileLedgerIsOpen(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.enqueue("x")
	s.run("backup", "b.db")
	w := s.start(s.command("work", "-q", "none", "--", "true"))
	s.eventually("the worker is there", func() bool {
		return strings.Contains(s.ran("events").stdout, "worker_started")
	})
	before := s.run("export")
	who := " open; nothing was changed"
	if runtime.GOOS == "linux" {
		who = fmt.Sprintf("(pid %d) has %s%s", w.Process.Pid, s.path("jobledger.db"), who)
	}
	s.wantRefused(cli.ExitBusy, who, "restore", "b.db", "--force")
	w.signal(syscall.SIGSTOP)
	s.wantRefused(cli.ExitBusy, who, "restore", "b.db", "--force")
	w.signal(syscall.SIGCONT)
	// reported first: it is known sooner
	s.wantRefused(cli.ExitConflict, "1 worker seems to be at work: ", "restore", "b.db")
	if got := s.run("export"); got != before {
		t.Error("a refused restore changed the history")
	}
	w.signal(syscall.SIGTERM)
	w.wantExit(0)
	s.run("restore", "b.db", "--force")
	s.run("verify")
	if left := s.tempFiles(); len(left) > 0 || len(s.kept()) != 1 {
		t.Errorf("there are %q and %q", left, s.kept())
	}
}

// A command that starts during a restore waits, and opens the new ledger.
func TestRestoreMakesOtherCommandsWait(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("who holds a lock is known on Linux only")
	}
	r := newRig(t)
	r.must(0, invoke("enqueue", "-q", "mail", "x"))
	r.must(0, invoke("backup", "b.db"))
	r.must(0, invoke("enqueue", "-q", "mail", "lost"))
	info, err := os.Stat(r.path(db))
	r.ok(err)
	restore := r.start(r.cmd(invoke("restore", "b.db", "--force").dyingAt("locked=stop")))
	r.wantStopped(restore)
	// The kernel returns its locks in pieces, and may leave one out while others change.
	r.eventually("it has locked the ledger", func() bool {
		locks, err := os.ReadFile("/proc/locks")
		r.ok(err)
		return slices.ContainsFunc(strings.Split(string(locks), "\n"), func(line string) bool {
			f := strings.Fields(line)
			return len(f) > 5 && f[1] == "OFDLCK" && f[3] == "WRITE" &&
				strings.HasSuffix(f[5], fmt.Sprint(":", info.Sys().(*syscall.Stat_t).Ino))
		})
	})
	late := r.start(r.cmd(invoke("enqueue", "-q", "mail", "late").dyingAt("met=stop")))
	r.wantStopped(late)
	late.signal(syscall.SIGCONT)
	restore.signal(syscall.SIGCONT)
	restore.wantExit(0)
	late.wantExit(0)
	if got := kindsOf(r.history(db)); got != "enqueued restored enqueued" {
		t.Errorf("the new ledger holds %s", got)
	}
	if got := kindsOf(r.history(filepath.Base(r.kept()[0]))); got != "enqueued enqueued" {
		t.Errorf("the old ledger holds %s", got)
	}
}

// A process that is about to open the ledger counts as one that has it open, although SQLite holds no lock
// for it yet.
func TestRestoreRefusedWhileLedgerIsBeingOpened(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux does opening a ledger take a lock before SQLite does")
	}
	r := newRig(t)
	r.must(0, invoke("enqueue", "-q", "mail", "x"))
	r.must(0, invoke("backup", "b.db"))
	late := r.start(r.cmd(invoke("enqueue", "-q", "mail", "late").dyingAt("connecting=stop")))
	r.wantStopped(late)
	r.must(cli.ExitBusy, invoke("restore", "b.db", "--force"))
	late.signal(syscall.SIGCONT)
	late.wantExit(0)
	if got := kindsOf(r.history(db)); got != "enqueued enqueued" {
		t.Errorf("the ledger holds %s", got)
	}
	r.must(0, invoke("restore", "b.db", "--force"))
}

// Restore counts the lost events a second time under the lock, when no other process can write.
func TestRestoreCountsLateEvents(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]string{"from a command": "", "from a command that was killed": "answer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.must(0, invoke("enqueue", "-q", "mail", "x"))
			r.must(0, invoke("backup", "b.db"))
			restore := r.start(r.cmd(invoke("restore", "b.db").dyingAt("drained=stop")))
			r.wantStopped(restore)
			r.do(invoke("enqueue", "-q", "mail", "y").dyingAt(step))
			restore.signal(syscall.SIGCONT)
			restore.wantExit(cli.ExitConflict)
			restore.wantSaid("1 event since ")
			if got := kindsOf(r.history(db)); got != "enqueued enqueued" {
				t.Errorf("the ledger holds %s", got)
			}
			if left := r.tempFiles(); len(left) > 0 {
				t.Errorf("there is %q", left)
			}
		})
	}
}

// A restore that was stopped before it had the lock may continue after another restore. It starts again with
// the new ledger, so no acknowledged event is lost.
func TestRestoreContinuesAfterAnotherRestore(t *testing.T) {
	t.Parallel()
	for step, x := range map[string]struct {
		restore invocation
		write   string // where a command stops that writes to the new ledger
		code    int
	}{
		"draining": {invoke("restore", "b.db"), "answer", cli.ExitConflict}, // the event would be lost
		"found":    {invoke("restore", "b.db", "--force"), "commit", cli.ExitBusy},
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.must(0, invoke("enqueue", "-q", "mail", "x"))
			r.must(0, invoke("backup", "b.db"))
			restore := r.start(r.cmd(x.restore.dyingAt(step + "=stop")))
			r.wantStopped(restore)
			r.must(0, invoke("restore", "b.db"))
			w := r.start(r.cmd(invoke("enqueue", "-q", "mail", "y").dyingAt(x.write + "=stop")))
			r.wantStopped(w)
			if x.code == cli.ExitConflict {
				w.signal(syscall.SIGKILL) // leaves the event in the -wal file only, and the ledger closed
				<-w.exited
			}
			restore.signal(syscall.SIGCONT)
			restore.wantExit(x.code)
			if x.code == cli.ExitBusy {
				w.signal(syscall.SIGCONT)
				w.wantExit(0)
			}
			if got := kindsOf(r.history(db)); got != "enqueued restored enqueued" {
				t.Errorf("the new ledger holds %s", got)
			}
			if left := r.tempFiles(); len(left) > 0 {
				t.Errorf("there is %q", left)
			}
		})
	}
}

// A restore that is killed leaves the old ledger or the new one complete, including what is only in the -wal
// file of the old one. The same command completes it.
func TestRestoreKilledAtEachStep(t *testing.T) {
	t.Parallel()
	const was, becomes = "enqueued enqueued enqueued", "enqueued enqueued restored"
	r := newRig(t)
	r.must(0, invoke("enqueue", "-q", "mail", "x"))
	r.must(0, invoke("enqueue", "-q", "mail", "y"))
	r.must(0, invoke("backup", "b.db"))
	if got := r.do(invoke("enqueue", "-q", "mail", "z").dyingAt("answer")); !got.killed {
		t.Fatalf("got %+v", got)
	}
	if info, err := os.Stat(r.path(db + "-wal")); err != nil || info.Size() == 0 {
		t.Fatal("its last process has left nothing in the -wal file:", err)
	}
	old, new := 0, 0
	restore := invoke("restore", "b.db", "--force")
	steps := restoreSteps
	switch {
	case *killAll:
		steps = slices.Concat(steps, []string{"connected", "begun", "committed"})
	case testing.Short():
		steps = []string{"drained", "cleared", "replaced"}
	}
	for _, step := range steps {
		r.dieAtEach(step, restore, 0, func(r rig, got exit) {
			switch got := kindsOf(r.history(db)); got {
			case was:
				old++
			case becomes:
				new++
			default:
				t.Errorf("the ledger holds %s", got)
			}
			if got.stdout != "" {
				t.Errorf("it said %q", got.stdout)
			}
			r.must(0, restore)
			if got := kindsOf(r.history(db)); got != becomes {
				t.Errorf("in the end the ledger holds %s", got)
			}
			there := ""
			for _, name := range r.kept() {
				there += kindsOf(r.history(filepath.Base(name))) + "\n"
			}
			if !strings.Contains(there, was+"\n") {
				t.Errorf("the old ledger is gone; there is %q", there)
			}
		})
	}
	if old == 0 || new == 0 {
		t.Errorf("it died %d times with the old ledger there, %d times with the new one", old, new)
	}
}

func TestRestoreInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.must(0, invoke("enqueue", "-q", "mail", "x"))
			r.must(0, invoke("backup", "b.db"))
			r.must(0, invoke("enqueue", "-q", "mail", "y"))
			restore := r.start(r.cmd(invoke("restore", "b.db", "--force").dyingAt("copied=5s")))
			r.eventually("it has begun", func() bool { return len(r.tempFiles()) > 0 })
			restore.signal(sig)
			restore.wantExit(cli.ExitUnexpected)
			restore.wantSaid("interrupted; the ledger is as it was")
			if got := kindsOf(r.history(db)); got != "enqueued enqueued" || len(r.tempFiles()) > 0 {
				t.Errorf("the ledger holds %s; there is %q", got, r.tempFiles())
			}
		})
	}
}

// Of two concurrent restores, one waits for the other or is refused.
func TestRestoreTwiceConcurrently(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.enqueue("x")
	s.run("backup", "b.db")
	s.enqueue("y")
	first, second := s.start(s.command("restore", "b.db", "--force")), s.start(s.command("restore", "b.db",
		"--force"))
	done := 0
	for _, p := range []*running{first, second} {
		<-p.exited
		switch code := p.ProcessState.ExitCode(); code {
		case cli.ExitOK:
			done++
		case cli.ExitBusy:
		default:
			t.Errorf("exit code %d: %s", code, p.said)
		}
	}
	if done == 0 || len(s.kept()) != done {
		t.Errorf("%d were done, and there is %q", done, s.kept())
	}
	s.run("verify")
	for _, name := range s.kept() {
		s.run("verify", "--db", name)
	}
}

func TestRestoreKeepsOwner(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.enqueue("x")
	s.run("backup", "b.db")
	path := s.path("jobledger.db")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	owner := os.Getuid()
	if owner == 0 {
		owner = 12345
		if err := os.Chown(path, owner, 54321); err != nil {
			t.Fatal(err)
		}
	}
	s.run("restore", "b.db")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := int(info.Sys().(*syscall.Stat_t).Uid); got != owner || info.Mode().Perm() != 0o640 {
		t.Errorf("it belongs to %d, %s", got, info.Mode())
	}
	s.run("verify")
}

func TestRestoreThroughSymlink(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.enqueue("x")
	s.run("backup", "b.db")
	if err := os.Mkdir(s.path("real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.path("jobledger.db"), s.path("real/jobs.db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real/jobs.db", s.path("jobledger.db")); err != nil {
		t.Fatal(err)
	}
	s.run("restore", "b.db")
	if to, err := os.Readlink(s.path("jobledger.db")); err != nil || to != "real/jobs.db" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	kept, _ := filepath.Glob(s.path("real/jobs.db.before-*"))
	if len(kept) != 1 || !strings.Contains(s.run("events"), "restored") {
		t.Errorf("there is %q\n%s", kept, s.run("events"))
	}
	s.run("verify")
}

// A ledger that cannot be read can be replaced.
func TestRestoreOverUnreadableLedger(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.enqueue("x")
	s.run("backup", "b.db")
	s.enqueue("y")
	path := s.path("jobledger.db")
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err == nil {
		_, err = file.WriteAt(bytes.Repeat([]byte{0xa5}, int(info.Size()-4096)), 4096)
	}
	if err != nil || file.Close() != nil {
		t.Fatal(err)
	}
	damaged, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.wantRefused(cli.ExitConflict, "it is unknown what would be lost: ", "restore", "b.db")
	s.run("restore", "b.db", "--force")
	s.run("verify")
	if got := s.run("events", "--kind", "restored", "--json"); !strings.Contains(got, `"events":1,"lost":null`) {
		t.Error(got)
	}
	if kept, err := os.ReadFile(s.kept()[0]); err != nil || !bytes.Equal(kept, damaged) {
		t.Errorf("what is kept is another file: %v", err)
	}
}

// A ledger of an older version is migrated, then compared.
func TestRestoreOverOlderVersion(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	migrations, err := schema.SQLite()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.enqueue("x")
	s.run("backup", "b.db")
	s.ok(os.Remove(s.path(db)))
	rig{site: s, program: ""}.oldLedger(migrations[:1])
	s.run("restore", "b.db") // no event is lost
	s.run("verify")
	if got := s.run("events", "--kind", "restored", "--json"); !strings.Contains(got, `"events":1,"lost":0`) {
		t.Error(got)
	}
}

// The backup may be in use, or on a read-only medium.
func TestRestoreLeavesBackupUnchanged(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	s.enqueue("x")
	folder := s.path("archive")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s.run("backup", "archive/b.db")
	before, err := os.Stat(filepath.Join(folder, "b.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
	s.run("restore", "archive/b.db")
	after, err := os.Stat(filepath.Join(folder, "b.db"))
	entries, _ := os.ReadDir(folder)
	if err != nil || !after.ModTime().Equal(before.ModTime()) || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	live := s.path("live.db")
	store, err := ledger.Open(t.Context(), live)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s.run("enqueue", "-q", "mail", "--db", live, "one")
	s.run("restore", live, "--db", "copy.db")
	if got := s.run("events", "--db", "copy.db"); !strings.Contains(got, "enqueued") {
		t.Errorf("what is in the -wal file of the backup is not restored:\n%s", got)
	}
}
