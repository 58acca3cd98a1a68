package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
)

// Users of one ledger, who share it by a group.
const (
	adaUID, bobUID   = 61001, 61002
	sharedGID        = 61000
	rootUID          = 0
	folderOfTheGroup = 0o770 | os.ModeSetgid
)

// as runs the program as a user of the group, with the umask of the documentation.
func (s site) as(uid int, words ...string) outcome {
	s.Helper()
	return s.outcomeOf(s.commandAs(uid, words...))
}

func (s site) commandAs(uid int, words ...string) *exec.Cmd {
	program := filepath.Join(filepath.Dir(s.dir), "jobledger")
	cmd := exec.Command("sh", append([]string{"-c", `umask 007; exec "$0" "$@"`, program}, words...)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME=/", "JOBLEDGER_DB="+s.path("jobs.db"))
	if uid != rootUID {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid),
			Gid: uint32(uid), Groups: []uint32{sharedGID}}}
	}
	return cmd
}

// shared makes a ledger that ada owns and her group may write.
func shared(t *testing.T) site {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("it takes root to be three users")
		}
		t.Skip("it takes root to be three users")
	}
	s := asUnprivileged(t)
	s.ok(os.Chown(s.dir, adaUID, sharedGID))
	s.ok(os.Chmod(s.dir, folderOfTheGroup))
	return s
}

// Three users, one of them root, work with a ledger of a group: all keep and see output, and doctor has
// nothing to say. Once root is first, once last.
func TestGroupSharesLedger(t *testing.T) {
	t.Parallel()
	for name, users := range map[string][]int{"root last": {adaUID, bobUID, rootUID},
		"root first": {rootUID, bobUID, adaUID}, "the owner last": {bobUID, rootUID, adaUID}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			good := func(o outcome, what string) string {
				t.Helper()
				if o.code != cli.ExitOK || strings.Contains(o.stderr, "not kept") ||
					strings.Contains(o.stderr, "denied") {
					t.Errorf("%s: exit code %d\n%s%s", what, o.code, o.stdout, o.stderr)
				}
				return o.stdout
			}
			good(s.as(adaUID, "init"), "init")
			s.chmod("jobs.db", 0o660)
			job := make(map[int]string)
			for _, uid := range users {
				job[uid] = good(s.as(uid, "enqueue", "-q", "a", "x", "--max-attempts", "2"), "enqueue")
				good(s.as(uid, "work", "-q", "a", "--drain", "--", "echo", "hello"), "work")
			}
			for _, reader := range []int{adaUID, bobUID, rootUID} {
				for _, writer := range users {
					if got := good(s.as(reader, "logs", job[writer]), "logs"); got != "hello" {
						t.Errorf("user %d of the log of %d: got %q", reader, writer, got)
					}
				}
				good(s.as(reader, "verify", "--logs"), "verify")
				if o := s.as(reader, "doctor"); o.code != cli.ExitOK ||
					!strings.HasPrefix(o.stdout, "ok: no problem found") {
					t.Errorf("doctor by %d: exit code %d\n%s", reader, o.code, o.stdout)
				}
			}
			// ada has a worker that runs, and bob makes the -wal file go on
			w := s.start(s.commandAs(bobUID, "work", "-q", "b", "--", "echo", "again"))
			last := good(s.as(adaUID, "enqueue", "-q", "b", "x"), "enqueue while a worker runs")
			s.eventually("bob has done it", func() bool {
				return strings.Contains(s.as(rootUID, "show", last, "--json").stdout, `"succeeded"`)
			})
			good(s.as(adaUID, "pause", "-q", "b"), "pause while a worker runs")
			w.signal(syscall.SIGTERM)
			w.wantExit(cli.ExitOK)
			good(s.as(bobUID, "erase", job[users[0]], "--reason", "x"), "erase")
			if _, err := os.Stat(s.path("jobs.db.logs/" + job[users[0]])); err == nil {
				t.Error("the log of what was erased is there")
			}
			good(s.as(adaUID, "verify"), "verify")
		})
	}
}

// Root looked into the ledger of a service. What root made is the service's.
func TestRootLeavesNothingOfItsOwn(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.chmod(".", 0o700)
	for _, words := range [][]string{{"enqueue", "-q", "a", "x"}} {
		if o := s.as(adaUID, words...); o.code != cli.ExitOK {
			t.Fatal(o.stderr)
		}
	}
	for _, words := range [][]string{{"status"}, {"enqueue", "-q", "a", "y"},
		{"work", "-q", "a", "--once", "--", "echo", "x"}, {"sweep"}} {
		if o := s.as(rootUID, words...); o.code != cli.ExitOK {
			t.Errorf("%s by root: exit code %d\n%s", words[0], o.code, o.stderr)
		}
	}
	s.ok(filepath.WalkDir(s.dir, func(path string, _ os.DirEntry, err error) error {
		if info, err := os.Lstat(path); err != nil || info.Sys().(*syscall.Stat_t).Uid != adaUID {
			t.Errorf("%s is of user %d", path, info.Sys().(*syscall.Stat_t).Uid)
		}
		return err
	}))
	for _, words := range [][]string{{"work", "-q", "a", "--drain", "--", "echo", "x"}, {"verify", "--logs"}} {
		if o := s.as(adaUID, words...); o.code != cli.ExitOK || strings.Contains(o.stderr, "not kept") {
			t.Errorf("%s by the service: exit code %d\n%s", words[0], o.code, o.stderr)
		}
	}
}

// A member of the group exchanges the folder of logs for one with a link to a file of the worker's user.
func TestGroupMemberCannotAimLogs(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.as(adaUID, "init")
	s.chmod("jobs.db", 0o660)
	secret := filepath.Join(filepath.Dir(s.dir), "precious")
	s.ok(os.WriteFile(secret, []byte("precious"), 0o600))
	s.ok(os.Chown(secret, adaUID, adaUID))
	job := s.as(bobUID, "enqueue", "-q", "a", "chosen by bob").stdout
	for _, folder := range []string{s.path("jobs.db.logs"), s.path("jobs.db.logs/" + job)} {
		s.ok(os.Mkdir(folder, 0o700))
		s.ok(os.Chmod(folder, folderOfTheGroup))
		s.ok(os.Lchown(folder, bobUID, sharedGID))
		s.ok(os.Chmod(folder, folderOfTheGroup))
	}
	link := s.path("jobs.db.logs/" + job + "/1.out")
	s.ok(os.Symlink(secret, link))
	s.ok(os.Lchown(link, bobUID, sharedGID))
	if o := s.as(rootUID, "logs", job, "--attempt", "1"); strings.Contains(o.stdout, "precious") {
		t.Errorf("logs shows %q", o.stdout)
	}
	s.as(adaUID, "work", "-q", "a", "--drain", "--", "cat")
	if text, err := os.ReadFile(secret); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if o := s.as(bobUID, "logs", job); o.stdout != "chosen by bob" {
		t.Errorf("logs: exit code %d, %q\n%s", o.code, o.stdout, o.stderr)
	}
}

// A pipe in the place of the doorbell keeps no command waiting.
func TestPipeAsDoorbellBlocksNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.enqueue("x")
	for _, name := range []string{"bell", "ended", "gate", "lock"} {
		_ = os.MkdirAll(s.path("jobledger.db.bell"), 0o700)
		_ = os.Remove(s.path("jobledger.db.bell/" + name))
		s.ok(syscall.Mkfifo(s.path("jobledger.db.bell/"+name), 0o600))
	}
	started := time.Now()
	s.enqueue("y")
	s.run("work", "-q", "mail", "--drain", "--", "true")
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	s.run("verify")
}

// logs -f of output that is cut while it is followed ends with its last words, shows no line twice, and says
// how much it left out.
func TestFollowOverCut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	job := s.enqueue("x")
	w := s.work("--once", "--log-limit", "20000", "--", "sh", "-c",
		`i=0; while [ $i -lt 20 ]; do seq -f "line $i %03g ............................" 100; i=$((i+1))
sleep 0.1; done; echo LAST`)
	s.eventually("it writes", func() bool {
		_, err := os.Stat(s.path("jobledger.db.logs/" + job + "/1.out"))
		return err == nil
	})
	got := s.ran("logs", "-f", job)
	w.wantExit(cli.ExitOK)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if got.code != cli.ExitOK || lines[len(lines)-1] != "LAST" {
		t.Errorf("exit code %d, it ends with %q\n%s", got.code, lines[len(lines)-1], got.stderr)
	}
	seen := make(map[string]bool)
	for _, line := range lines {
		if seen[line] && strings.HasPrefix(line, "line") {
			t.Errorf("%q was shown twice", line)
		}
		seen[line] = true
	}
	if len(lines) < 2001 && !strings.Contains(got.stderr, "bytes are left out here") {
		t.Errorf("%d of 2001 lines, and it says %q", len(lines), got.stderr)
	}
}

// A log that a full disk cut is said to be a part.
func TestLogsOnFullDisk(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mkdir("jobledger.db.logs")
	job := s.enqueue("x")
	got := s.inNamespace("mount -t tmpfs -o size=256k,mode=700 none jobledger.db.logs || exit 9\n" +
		"jobledger work -q mail --drain -- sh -c 'head -c 700000 /dev/zero | tr \"\\0\" x' 2>/dev/null\n" +
		"jobledger logs " + job + " 2>said | wc -c; cat said; jobledger verify --logs && jobledger show " + job)
	for _, want := range []string{"262144\n", "262144 of the 700000 bytes", "succeeded"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %q", got, want)
		}
	}
}

// verify --logs goes on behind a file that it cannot read, and finds the change after it.
func TestVerifyLogsGoesOnBehindUnreadableFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var jobs []string
	for range 3 {
		jobs = append(jobs, s.enqueue("x"))
	}
	s.run("work", "-q", "mail", "--drain", "--", "echo", "hello")
	log := func(job string) string { return s.path("jobledger.db.logs/" + job + "/1.out") }
	s.ok(os.Remove(log(jobs[0])))
	s.ok(syscall.Mkfifo(log(jobs[0]), 0o600))
	s.ok(os.WriteFile(log(jobs[2]), []byte("jello\n"), 0o600))
	got := s.ran("verify", "--logs")
	for _, want := range []string{"L01", "L02", "1 that cannot be read", "1 differing"} {
		if got.code != cli.ExitDiscrepancy || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("exit code %d, want 8 and %q\n%s%s", got.code, want, got.stdout, got.stderr)
		}
	}
}
