package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// smallDisk mounts a file system of so many KiB in a new folder until the end of the test. Without root, it
// runs the test again as root of a new namespace; ok is false in the outer run.
func smallDisk(t *testing.T, kib int) (s site, ok bool) {
	t.Helper()
	s = site{TB: t, dir: t.TempDir()}
	err := syscall.Mount("tmpfs", s.dir, "tmpfs", 0, fmt.Sprintf("size=%dk,mode=700", kib))
	switch {
	case err == nil:
		t.Cleanup(func() {
			if err := syscall.Unmount(s.dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		s.run("init")
		return s, true
	case os.Geteuid() == 0 && os.Getenv("CI") == "true":
		t.Fatalf("root cannot mount a file system: %v", err)
	case os.Geteuid() == 0:
		t.Skipf("root cannot mount a file system: %v", err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v",
		fmt.Sprintf("-test.short=%t", testing.Short()), fmt.Sprintf("-long=%t", ledgertest.Long()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	switch _, ended := errors.AsType[*exec.ExitError](err); {
	case err == nil && strings.Contains(string(out), "--- SKIP"):
		t.Skipf("neither here nor in a namespace of its own:\n%s", out)
	case err != nil && !ended:
		t.Skipf("no file system without root, and no namespace: %v", err)
	case err != nil:
		t.Errorf("in a namespace of its own: %v\n%s", err, out)
	}
	return s, false
}

// fill leaves n bytes of a small disk free.
func (s site) fill(free int64) {
	s.Helper()
	f, err := os.OpenFile(s.path("filler"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	size := int64(0)
	for page := make([]byte, 4096); ; {
		n, err := f.Write(page)
		size += int64(n)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	if err := f.Truncate(max(size-free, 0)); err != nil {
		s.Fatal(err)
	}
}

func (s site) makeRoom() {
	s.Helper()
	if err := os.Remove(s.path("filler")); err != nil {
		s.Fatal(err)
	}
}

// The disk fills up under a busy worker; later there is space again.
func TestFullDiskUnderWorker(t *testing.T) {
	t.Parallel()
	s, ok := smallDisk(t, 2048)
	if !ok {
		return
	}
	elsewhere := site{TB: t, dir: t.TempDir()}
	done := elsewhere.path("done")
	job := s.enqueue("--key", "first", "x")
	w := s.work("--lease", "9s", "--", "sh", "-c",
		"echo $$ >>begun; until [ -e "+elsewhere.path("go")+
			" ]; do sleep 0.02; done; echo done; echo $JOBLEDGER_KEY >>"+done)
	s.pids("begun", 1)
	keys := append(s.enqueueMany(3), "first")
	s.fill(0)
	elsewhere.touch("go")
	w.stuck("disk full")

	// reads continue to work
	for _, words := range [][]string{{"status"}, {"list"}, {"show", job}, {"history", job}, {"verify"},
		{"workers"}, {"events"}} {
		if a := s.outcomeOf(s.command(words...)); a.code != cli.ExitOK {
			t.Errorf("%s on a full disk: exit %d: %s", words[0], a.code, a.stderr)
		}
	}
	for _, words := range [][]string{{"enqueue", "-q", "mail", "--key", "late", "x"}, {"pause", "-q", "mail"},
		{"cancel", job}} {
		a := s.outcomeOf(s.command(words...))
		if a.code != cli.ExitBusy || !strings.Contains(a.stderr, "disk full") ||
			!strings.Contains(a.stderr, "\nhint: the disk is full; free some space and try again; ") {
			t.Errorf("%s on a full disk: exit %d: %s", words[0], a.code, a.stderr)
		}
	}

	s.makeRoom()
	s.within(time.Minute, "all jobs are done", func() bool { return s.succeeded() == len(keys) })
	w.wantSaid("the ledger answers again")
	w.signal(syscall.SIGTERM)
	w.wantExit(cli.ExitOK)
	w.wantSaid("4 claimed, 4 succeeded, 0 failed, 0 released, 0 lost")
	text, err := os.ReadFile(done)
	if n := strings.Count(string(text), "\n"); err != nil || n != len(keys) {
		t.Errorf("%d jobs were worked on %d times: %q, %v", len(keys), n, text, err)
	}
	s.acknowledged(keys)
}

// within polls until ok returns true.
func (s site) within(d time.Duration, what string, ok func() bool) {
	s.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(20 * time.Millisecond) { // pause of a poll
		if time.Now().After(end) {
			s.Fatalf("not within %s: %s", d, what)
		}
	}
}

// No process has the ledger open, and there is no space for the -wal and -shm files.
func TestFullDiskBeforeFirstCommand(t *testing.T) {
	t.Parallel()
	s, ok := smallDisk(t, 1024)
	if !ok {
		return
	}
	job := s.enqueue("--key", "a", "x")
	s.fill(0)
	for _, words := range [][]string{{"list"}, {"status"}, {"verify"}, {"show", job},
		{"enqueue", "-q", "mail", "x"}, {"claim", "-q", "mail"},
		{"work", "-q", "mail", "--drain", "--", "true"}, {"sweep"}, {"init", "--db", "new.db"},
		{"enqueue", "-q", "mail", "--db", "new.db", "x"}, {"backup", "copy.db"}} {
		a := s.outcomeOf(s.command(words...))
		if a.code != cli.ExitBusy || !strings.Contains(a.stderr, "disk full") &&
			!strings.Contains(a.stderr, "no space left") || !strings.Contains(a.stderr, "\nhint: the disk is full; ") {
			t.Errorf("%s on a full disk: exit %d: %s", words[0], a.code, a.stderr)
		}
	}
	s.makeRoom()
	s.acknowledged([]string{"a"})
	s.run("init", "--db", "new.db")
	s.run("verify", "--db", "new.db")
	s.run("backup", "copy.db")
}

// Whatever number of pages is free, acknowledged data is safe.
func TestFullDiskNearlyLosesNothing(t *testing.T) {
	t.Parallel()
	s, ok := smallDisk(t, 1024)
	if !ok {
		return
	}
	var acknowledged []string
	outcomes := make(map[int]int)
	for pages := 0; pages <= 24; pages += ledgertest.Size(5, 2, 1) {
		s.fill(int64(pages) * 4096)
		for _, size := range []int{1, 20_000} {
			key := fmt.Sprintf("p%d-%d", pages, size)
			a := s.outcomeOf(s.command("enqueue", "-q", "mail", "--key", key, strings.Repeat("x", size)))
			s.refusedFor(key, a, cli.ExitBusy)
			if outcomes[a.code]++; a.code == cli.ExitOK {
				acknowledged = append(acknowledged, key)
			}
		}
		s.makeRoom()
	}
	if outcomes[cli.ExitOK] == 0 || outcomes[cli.ExitBusy] == 0 {
		t.Errorf("the disk was never full, or always: %v", outcomes)
	}
	s.acknowledged(acknowledged)
}
