package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// outcome is how a command ended, and its output.
type outcome struct {
	code           int
	stdout, stderr string
}

func (s site) outcomeOf(cmd *exec.Cmd) outcome {
	s.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		s.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), strings.TrimSuffix(stdout.String(), "\n"), stderr.String()}
}

// limited returns a command under a limit of sh's ulimit.
func (s site) limited(limit string, words ...string) *exec.Cmd {
	cmd := exec.Command("sh", append([]string{"-c", "ulimit " + limit + `; exec jobledger "$@"`, "sh"},
		words...)...)
	cmd.Dir = s.dir
	return cmd
}

// refusedFor requires success, or an exit code with a reason and a hint.
func (s site) refusedFor(what string, a outcome, codes ...int) {
	s.Helper()
	if a.code == cli.ExitOK || a.code == cli.ExitNothing {
		return
	}
	if !slices.Contains(codes, a.code) || !saysWhy(a.stderr) ||
		!strings.Contains(a.stderr, "\nhint: ") || strings.Contains(a.stderr, "goroutine") {
		s.Errorf("%s: exit %d: %s", what, a.code, a.stderr)
	}
}

// keys returns the keys of all jobs.
func (s site) keys() (keys []string) {
	s.Helper()
	for line := range strings.Lines(s.run("list", "--limit", "0", "--json")) {
		_, rest, _ := strings.Cut(line, `"key":"`)
		key, _, _ := strings.Cut(rest, `"`)
		keys = append(keys, key)
	}
	return keys
}

// acknowledged requires that every acknowledged job is stored, and each of the others at most once.
func (s site) acknowledged(keys []string) {
	s.Helper()
	got := s.keys()
	for _, key := range keys {
		if !slices.Contains(got, key) {
			s.Errorf("%s was acknowledged and is not there", key)
		}
	}
	slices.Sort(got)
	if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
		s.Errorf("%d of %d jobs are there twice", len(got)-n, len(got))
	}
	s.run("verify")
}

func TestFileSizeLimitLosesNothing(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	var acknowledged []string
	outcomes := make(map[int]int)
	for kib := 0; kib <= 112; kib += 8 {
		key := fmt.Sprint("k", kib)
		a := s.outcomeOf(s.limited(fmt.Sprint("-f ", 2*kib), "enqueue", "-q", "mail", "--key", key, "x"))
		s.refusedFor(fmt.Sprintf("enqueue with files of up to %d KiB", kib), a, cli.ExitBusy)
		if outcomes[a.code]++; a.code == cli.ExitOK {
			acknowledged = append(acknowledged, key)
		}
		s.refusedFor(fmt.Sprintf("list with files of up to %d KiB", kib),
			s.outcomeOf(s.limited(fmt.Sprint("-f ", 2*kib), "list")), cli.ExitBusy)
	}
	if outcomes[cli.ExitOK] == 0 || outcomes[cli.ExitBusy] == 0 {
		t.Errorf("the limits were not limits: %v", outcomes)
	}
	s.acknowledged(acknowledged)
}

// busyTime returns the processor time that a process has used.
func busyTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / 100 // Linux counts ticks of 10 ms
}

// stuck checks that a worker that cannot continue waits: it is alive, silent and idle.
func (p *running) stuck(text string) {
	p.Helper()
	p.wantSaid(text)
	before, lines := busyTime(p.TB, p.Process.Pid), strings.Count(p.said.String(), "\n")
	time.Sleep(2 * time.Second) // the processor time of this span is measured
	if took := busyTime(p.TB, p.Process.Pid) - before; took > 500*time.Millisecond && !underRace {
		p.Errorf("a worker that cannot go on took %s of the processor in two seconds", took)
	}
	if n := strings.Count(p.said.String(), "\n") - lines; n > 6 {
		p.Errorf("%d lines in two seconds:\n%s", n, p.said)
	}
	select {
	case <-p.exited:
		p.Fatalf("the worker has ended: %s", p.said)
	default:
	}
}

func (p *running) setLimit(resource int, soft uint64) {
	p.Helper()
	var limit unix.Rlimit
	if err := unix.Prlimit(p.Process.Pid, resource, nil, &limit); err != nil {
		p.Fatal(err)
	}
	limit.Cur = min(soft, limit.Max)
	if err := unix.Prlimit(p.Process.Pid, resource, &limit, nil); err != nil {
		p.Fatal(err)
	}
}

// enqueueMany enqueues n jobs with keys in the queue mail.
func (s site) enqueueMany(n int) (keys []string) {
	s.Helper()
	var lines strings.Builder
	for i := range n {
		keys = append(keys, fmt.Sprint("job-", i))
		fmt.Fprintf(&lines, `{"payload":"x","key":"job-%d"}`+"\n", i)
	}
	cmd := s.command("enqueue", "-q", "mail", "--jsonl", "-")
	cmd.Stdin = strings.NewReader(lines.String())
	if a := s.outcomeOf(cmd); a.code != cli.ExitOK {
		s.Fatalf("%d: %s", a.code, a.stderr)
	}
	return keys
}

func (s site) succeeded() int {
	s.Helper()
	out, _ := s.command("list", "--state", "succeeded", "--limit", "0", "--json").Output()
	return bytes.Count(out, []byte("\n"))
}

func TestFileSizeLimitLiftedUnderWorker(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	keys := s.enqueueMany(20)
	// in blocks of 512 bytes: the -wal file soon has no space
	w := s.start(s.limited("-S -f 400", "work", "-q", "mail", "--", "true"))
	w.stuck("input or output failed")
	done := s.succeeded()
	if done == 0 || done == len(keys) {
		t.Errorf("%d of %d jobs were done under the limit", done, len(keys))
	}
	s.run("status")
	w.setLimit(unix.RLIMIT_FSIZE, unix.RLIM_INFINITY)
	s.within(time.Minute, "all jobs are done", func() bool { return s.succeeded() == len(keys) })
	w.wantSaid("the ledger answers again")
	w.signal(syscall.SIGTERM)
	w.wantExit(cli.ExitOK)
	w.wantSaid(fmt.Sprintf("%d claimed, %[1]d succeeded, 0 failed, 0 released, 0 lost", len(keys)))
	s.acknowledged(keys)
}

func TestOpenFileLimitIsReported(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	var acknowledged []string
	outcomes := make(map[int]int)
	for n := 8; n <= 20; n++ { // the Go runtime cannot start with fewer
		limit, key := fmt.Sprint("-n ", n), fmt.Sprint("n", n)
		a := s.outcomeOf(s.limited(limit, "enqueue", "-q", "mail", "--key", key, "x"))
		s.refusedFor("enqueue with "+limit, a, cli.ExitBusy)
		if outcomes[a.code]++; a.code == cli.ExitOK {
			acknowledged = append(acknowledged, key)
		}
		s.refusedFor("list with "+limit, s.outcomeOf(s.limited(limit, "list")), cli.ExitBusy)
		s.refusedFor("claim with "+limit, s.outcomeOf(s.limited(limit, "claim", "-q", "nothing")), cli.ExitBusy)
	}
	if outcomes[cli.ExitOK] == 0 || outcomes[cli.ExitBusy] == 0 {
		t.Errorf("the limits were not limits: %v", outcomes)
	}
	s.acknowledged(acknowledged)
}

// openFiles returns how many files a process has open.
func openFiles(t testing.TB, pid int) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestOpenFileLimitLiftedUnderWorker(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	s := newSite(t)
	w := s.work("--", "true")
	first := s.enqueue("x")
	s.eventually("a job is done", func() bool { return s.succeeded() == 1 })
	had := openFiles(t, w.Process.Pid)
	w.setLimit(unix.RLIMIT_NOFILE, uint64(had+2))
	keys := s.enqueueMany(10)
	w.stuck("too many open files")
	s.run("status")
	if n := strings.Count(s.run("events", "--kind", "claimed", "--limit", "10000"), "\n"); n > 10 {
		t.Errorf("%d claims by a worker that can start nothing", n)
	}
	w.setLimit(unix.RLIMIT_NOFILE, 1<<20)
	s.within(time.Minute, "all jobs are done", func() bool { return s.succeeded() == 1+len(keys) })
	if n := openFiles(t, w.Process.Pid); n > had+8 { // one or two more readers
		t.Errorf("it has %d open files, and had %d", n, had)
	}
	w.signal(syscall.SIGTERM)
	w.wantExit(cli.ExitOK)
	w.wantSaid(" 0 failed,")
	s.wantEvents(first, "enqueued claimed succeeded")
	s.acknowledged(keys)
}

// asUnprivileged returns a site whose commands have only the rights that file modes give them. A test that
// runs as root runs them as another user.
func asUnprivileged(t *testing.T) site {
	t.Helper()
	dir, err := os.MkdirTemp("", "jobledger-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
		_ = os.RemoveAll(dir)
	})
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	// a command that another test starts now would inherit the open file, and exec would fail with ETXTBSY
	syscall.ForkLock.RLock()
	err = os.WriteFile(filepath.Join(dir, "jobledger"), program, 0o755)
	syscall.ForkLock.RUnlock()
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "place"), 0o755)); err != nil {
		t.Fatal(err)
	}
	s := site{TB: t, dir: filepath.Join(dir, "place")}
	if os.Geteuid() == 0 {
		if err := os.Chown(s.dir, nobodyUID, nobodyUID); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

const nobodyUID = 65534

func (s site) nobodys(words ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(filepath.Dir(s.dir), "jobledger"), words...)
	cmd.Dir = filepath.Dir(s.dir)
	cmd.Env = append(os.Environ(), "HOME=/", "JOBLEDGER_DB=place/jobs.db")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
	}
	return cmd
}

func (s site) chmod(name string, mode os.FileMode) {
	s.Helper()
	if err := os.Chmod(s.path(name), mode); err != nil {
		s.Fatal(err)
	}
}

func TestReadOnlyPlacesAreReported(t *testing.T) {
	t.Parallel()
	reads := [][]string{{"list"}, {"status"}, {"verify"}, {"events"}, {"show", "JOB"}, {"history", "JOB"},
		{"why", "JOB"}, {"export"}}
	writes := [][]string{{"enqueue", "-q", "mail", "x"}, {"claim", "-q", "mail"}, {"cancel", "JOB"},
		{"pause", "-q", "mail"}, {"sweep"}, {"work", "-q", "mail", "--drain", "--", "true"}}
	reads, writes = ledgertest.Sample(reads, 3), ledgertest.Sample(writes, 3)
	for name, test := range map[string]struct {
		file, folder os.FileMode
		reads        bool
		says         string
	}{
		"a file that may only be read": {0o400, 0o755, true,
			"may only be read: write .*/jobs.db: permission denied"},
		"a folder that may not be written": {0o600, 0o555, true,
			"may only be read: write .*/place: permission denied"},
		"a file that may not be read":      {0, 0o755, false, "read .*/jobs.db: permission denied"},
		"a folder that may not be entered": {0o600, 0o644, false, "jobs.db: permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := asUnprivileged(t)
			a := s.outcomeOf(s.nobodys("enqueue", "-q", "mail", "x"))
			if a.code != cli.ExitOK {
				t.Fatalf("%d: %s", a.code, a.stderr)
			}
			job := a.stdout
			s.chmod("jobs.db", test.file)
			s.chmod(".", test.folder)
			check := func(words []string, want bool) {
				t.Helper()
				words = slices.Clone(words)
				for i := range words {
					if words[i] == "JOB" {
						words[i] = job
					}
				}
				switch a := s.outcomeOf(s.nobodys(words...)); {
				case want && a.code != cli.ExitOK:
					t.Errorf("%s: exit %d: %s", words[0], a.code, a.stderr)
				case !want && (a.code != cli.ExitUnexpected || !regexp.MustCompile(test.says).MatchString(a.stderr)):
					t.Errorf("%s: exit %d: %s", words[0], a.code, a.stderr)
				}
			}
			for _, words := range reads {
				check(words, test.reads)
			}
			for _, words := range writes {
				check(words, words[0] == "sweep" && test.reads)
			}
			s.chmod(".", 0o755)
			s.chmod("jobs.db", 0o600) // the command works again
			for _, words := range slices.Concat(reads, writes) {
				if words[0] != "claim" && words[0] != "cancel" {
					check(words, true)
				}
			}
		})
	}
}
