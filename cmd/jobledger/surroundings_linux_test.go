package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// What a command writes is kept to the byte, whatever the bytes are; a table shows text only.
func TestWorkKeepsEveryByte(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var all []byte
	for b := range 256 {
		all = append(all, byte(b), byte(255-b))
	}
	s.ok(os.WriteFile(s.path("all"), all, 0o600))
	job := s.enqueue("x")
	s.run("work", "-q", "mail", "--once", "--", "cat", "all")
	if got := s.ran("logs", job).stdout; got != string(all) {
		t.Errorf("the log is %q", got)
	}
	var shown struct {
		Result []byte `json:"result_base64"`
	}
	line, _, _ := strings.Cut(s.run("show", job, "--json"), "\n")
	s.ok(json.Unmarshal([]byte(line), &shown))
	if string(shown.Result) != string(all) {
		t.Errorf("the result is %q", shown.Result)
	}
	if got := s.run("show", job); got != strings.ToValidUTF8(got, "?") {
		t.Errorf("a table has bytes that are not text: %q", got)
	}
	s.run("verify", "--logs")
}

// A command finds the limits, the mask of new files and the signals that the worker was started with: what
// the worker sets for its own sake is not passed on.
func TestWorkCommandFindsWhatAShellFinds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.enqueue("x")
	const look = `yes | head -n 1 >/dev/null; umask; ulimit -Sn; ulimit -Hn; cat /proc/self/oom_score_adj; nice
grep -E 'Sig(Blk|Ign)|NoNewPrivs' /proc/self/status`
	s.ok(os.WriteFile(s.path("look"), []byte(look), 0o700))
	shell := func(line string) string {
		cmd := exec.Command("sh", "-c", "ulimit -Sn 300; umask 027; exec "+line)
		cmd.Dir = s.dir
		out, err := cmd.Output()
		s.ok(err)
		return string(out)
	}
	want := shell("sh look")
	shell("jobledger work -q mail --once -- sh look >/dev/null")
	if got := s.run("logs", "-q", "mail", "--last"); got+"\n" != want {
		t.Errorf("the command finds %s\na shell finds %s", got, want)
	}
}

// The folder of a ledger gets another name while a worker uses it: what the new name has is the whole ledger,
// and nothing appears at the old one.
func TestWorkFolderRenamed(t *testing.T) {
	t.Parallel()
	s := site{TB: t, dir: t.TempDir()}
	s.mkdir("a")
	held := s.run("enqueue", "-q", "mail", "--db", "a/j.db", "x")
	w := s.start(s.command("work", "-q", "mail", "--db", "a/j.db", "--lease", "6s", "--", "sh", "-c", untilGo))
	pids := s.pids("begun", 1)
	s.move("a", "b")
	s.env = []string{"JOBLEDGER_DB=" + s.path("b/j.db")}
	later := s.run("enqueue", "-q", "other", "y")
	w.wantExit(cli.ExitBusy)
	s.eventually("the command has ended", func() bool { return gone(pids) })
	s.wantJob(held, `"attempt":1`, `"failures":0`)
	s.wantJob(later, `"state":"queued"`)
	if _, err := os.Stat(s.path("a")); err == nil {
		t.Error("something was made at the old name")
	}
	s.run("verify")
}

// A deploy removes the folder in which a worker was started, and its command with it: the worker ends, and no
// job fails for that.
func TestWorkFolderOfCommandRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mkdir("release")
	s.ok(os.WriteFile(s.path("release/send"), []byte("#!/bin/sh\ncat\n"), 0o700))
	cmd := s.command("work", "-q", "mail", "--db", s.path(db), "--", "./send")
	cmd.Dir = s.path("release")
	w := s.start(cmd)
	first := s.enqueue("x")
	s.run("wait", first)
	s.ok(os.RemoveAll(s.path("release")))
	second := s.enqueue("y")
	w.wantExit(cli.ExitNotFound)
	s.wantJob(second, `"state":"queued"`, `"failures":0`)
	s.run("verify")
}

// The user has no inotify instance left: a worker polls.
func TestWorkWithoutInotify(t *testing.T) {
	t.Parallel()
	const none = "echo 0 >/proc/sys/user/max_inotify_instances"
	if out, err := exec.Command("unshare", "-Ur", "sh", "-c", none).CombinedOutput(); err != nil {
		t.Skipf("no user namespaces: %v: %s", err, out)
	}
	s := newSite(t)
	first := s.enqueue("x")
	cmd := exec.Command("unshare", "-Ur", "sh", "-c", none+"; exec jobledger work -q mail --max-jobs 2 -- cat")
	cmd.Dir = s.dir
	w := s.start(cmd)
	s.run("wait", first)
	second := s.enqueue("y")
	w.wantExit(0)
	s.wantJob(second, `"state":"succeeded"`)
	s.run("verify")
}

// A job whose command kills its worker is counted each time, and given up after its attempts.
func TestWorkKilledByItsJob(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	job := s.enqueue("x", "--max-attempts", "2", "--backoff", "min 1ms, max 1ms")
	for n := range 2 {
		_ = os.Remove(s.path("worker")) // of the attempt before
		w := s.work("--lease", "3s", "--", "sh", "-c",
			`echo >>ran; until pid=$(cat worker); do sleep 0.05; done; kill -9 $pid; sleep 30`)
		s.ok(os.WriteFile(s.path("new"), fmt.Append(nil, w.Process.Pid), 0o600))
		s.move("new", "worker")
		s.eventually(fmt.Sprintf("attempt %d has killed its worker", n+1), func() bool {
			select {
			case <-w.exited:
				return true
			default:
				return false
			}
		})
		s.eventually("the end of the lease", func() bool { return s.run("sweep", "--grace", "0s") == "1" })
	}
	s.work("--drain", "--", "true").wantExit(0)
	s.wantJob(job, `"state":"failed"`, `"attempt":2`, `"failures":2`, `"error_code":"lease_expired"`)
	if n := s.linesOf("ran"); n != 2 {
		t.Errorf("it ran %d times, want 2", n)
	}
	s.run("verify")
}

// A worker that carries out schedules needs no more memory after 1,500 jobs than after 600.
func TestWorkKeepsItsSize(t *testing.T) {
	t.Parallel()
	if !ledgertest.Long() {
		t.Skip("runs 1,500 jobs: with -long")
	}
	s := newSite(t)
	for n := range 20 {
		s.run("schedule", "set", fmt.Sprint("s", n), "-q", "often", "--every", "1s", "--overlap", "allow", "x")
	}
	w := s.start(s.command("work", "-q", "mail", "-q", "often", "-j", "4", "--no-capture", "--", "true"))
	var sizes, files []int
	for done := 150; done <= 1500; done += 150 {
		cmd := s.command("enqueue", "-q", "mail", "--priority", "1", "--jsonl", "-")
		cmd.Stdin = strings.NewReader(strings.Repeat(`{"payload":"x"}`+"\n", 150))
		s.ok(cmd.Run())
		s.eventually(fmt.Sprintf("%d jobs are done", done), func() bool {
			return s.ran("list", "-q", "mail", "--state", "queued", "--limit", "1").code == cli.ExitNothing
		})
		if !slices.Contains([]int{150, 600, 1500}, done) {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.Process.Pid))
		s.ok(err)
		_, rest, _ := strings.Cut(string(status), "\nVmRSS:")
		kib := 0
		_, err = fmt.Sscan(rest, &kib)
		s.ok(err)
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.Process.Pid))
		s.ok(err)
		sizes, files = append(sizes, kib), append(files, len(open))
	}
	t.Logf("%d KiB, %d open files", sizes, files)
	if sizes[2] > sizes[1]*4/3 || sizes[2] > sizes[0]*2 || files[2] > 100 {
		t.Errorf("it grows: %d KiB, %d open files", sizes, files)
	}
	w.signal(syscall.SIGTERM)
	w.wantExit(0)
	s.run("verify")
}
