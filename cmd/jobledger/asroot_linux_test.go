package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

// asRoot is a command that becomes root, as sudo does: it adds its process id to the file "roots", and lives
// until there is no file "hold". It ignores TERM.
func asRoot() {
	if err := syscall.Setresgid(0, 0, 0); err != nil {
		panic(err)
	}
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		panic(err)
	}
	f, err := os.OpenFile("roots", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, os.Getpid())
	_ = f.Close()
	for range 12000 {
		if _, err := os.Stat("hold"); err != nil {
			os.Exit(3)
		}
		time.Sleep(10 * time.Millisecond) // pause of a poll
	}
	os.Exit(1)
}

// rooted is a ledger of another user than root, whose commands become root.
type rooted struct{ site }

func newRooted(t *testing.T) rooted {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	s := asUnprivileged(t)
	program, err := os.ReadFile("/proc/self/exe")
	s.ok(err)
	syscall.ForkLock.RLock()
	err = os.WriteFile(s.path("as-root"), program, 0o755)
	syscall.ForkLock.RUnlock()
	s.ok(err)
	s.ok(syscall.Chmod(s.path("as-root"), 0o4755))
	s.touch("hold")
	if ledgertest.OnPostgres(t) {
		s.env = []string{"JOBLEDGER_DB=" + ledgertest.Postgres(t)}
	} else {
		s.env = []string{"JOBLEDGER_DB=" + s.path("jobs.db")}
	}
	return rooted{s}
}

func (s rooted) command(words ...string) *exec.Cmd {
	cmd := s.nobodys(words...)
	cmd.Dir = s.dir
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

// says runs a command of that user, and returns what it prints.
func (s rooted) says(words ...string) string {
	s.Helper()
	a := s.outcomeOf(s.command(words...))
	if a.code != 0 {
		s.Fatalf("jobledger %s: exit code %d: %s", strings.Join(words, " "), a.code, a.stderr)
	}
	return a.stdout
}

func (s rooted) work(words ...string) *running {
	s.Helper()
	return s.start(s.command(append(append([]string{"work", "-q", "mail", "--kill-after", "300ms"}, words...),
		"--", filepath.Join(s.dir, "as-root"))...))
}

// roots returns the process ids of the commands so far.
func (s rooted) roots() []string {
	text, _ := os.ReadFile(s.path("roots"))
	return strings.Fields(string(text))
}

// oneRoot waits for the only command, and returns its process id.
func (s rooted) oneRoot() int {
	s.Helper()
	s.eventually("the command is root", func() bool { return len(s.roots()) > 0 })
	pid, err := strconv.Atoi(s.roots()[0])
	s.ok(err)
	return pid
}

// stays requires for a time that nothing but the first command was started, and that it lives.
func (s rooted) stays(d time.Duration) {
	s.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // pause of a poll
		if roots := s.roots(); len(roots) != 1 {
			s.Fatalf("%d commands were started: %s\n%s", len(roots), roots, s.says("events"))
		}
	}
	if gone([]int{s.oneRoot()}) {
		s.Error("the command is gone")
	}
}

func (s rooted) kinds(job string) string {
	s.Helper()
	var kinds []string
	for line := range strings.Lines(s.says("history", job, "--json")) {
		_, rest, _ := strings.Cut(line, `"kind":"`)
		kind, _, _ := strings.Cut(rest, `"`)
		switch kind {
		case "heartbeat", "refused", "survived", "rescheduled":
		default:
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, " ")
}

func (s rooted) eventuallyKinds(job, want string) {
	s.Helper()
	got := ""
	defer func() {
		if s.Failed() {
			s.Logf("the events %s", got)
		}
	}()
	s.eventually("the events "+want, func() bool {
		got = s.kinds(job)
		return strings.HasPrefix(got, want)
	})
}

// TestRootCommandIsNeverTwice: a command that has become root cannot be ended by a worker that is not. While
// it lives, its attempt has not ended, whatever should end it, and no other one begins.
func TestRootCommandIsNeverTwice(t *testing.T) {
	t.Parallel()
	const wait = 9 * time.Second // three leases, and the graces of the sweepers
	for name, test := range map[string]func(s rooted){
		"max runtime": func(s rooted) {
			job := s.says("enqueue", "-q", "mail", "--max-runtime", "1s",
				"--backoff", "min 1s, max 1s, factor 1", "x")
			w := s.work("--lease", "3s", "-j", "2")
			why := fmt.Sprintf("pid %d (as-root) belongs to root", s.oneRoot())
			w.wantSaid("cannot be ended job=" + job)
			s.stays(wait)
			for _, words := range [][]string{{"show", job}, {"show", job, "--json"}, {"why", job}, {"workers"},
				{"workers", "--json"}, {"history", job}, {"history", job, "--json"}} {
				if said := s.says(words...); !strings.Contains(said, why) {
					s.Errorf("%s does not say %q: %s", strings.Join(words, " "), why, said)
				}
			}
			s.ok(os.Remove(s.path("hold")))
			s.eventuallyKinds(job, "enqueued"+strings.Repeat(" claimed failed", 5))
			if said := s.says("history", job); !strings.Contains(said, "max runtime") {
				s.Error(said)
			}
			w.signal(syscall.SIGTERM)
			w.wantExit(0)
		},
		"TERM of the worker": func(s rooted) {
			job := s.says("enqueue", "-q", "mail", "--max-attempts", "1", "x")
			w, other := s.work("--lease", "3s"), s.work("--lease", "3s")
			s.oneRoot()
			s.eventually("both workers run", func() bool {
				return strings.Count(s.says("workers", "--json"), `"stopped_at":null`) == 2
			})
			for _, p := range []*running{w, other} {
				p.signal(syscall.SIGTERM)
				p.wantSaid("no more jobs are claimed")
			}
			for _, p := range []*running{w, other} {
				_ = p.Process.Signal(syscall.SIGTERM) // one of them has gone: it held nothing
			}
			third := s.work("--lease", "3s")
			s.eventually("it is said", func() bool {
				return strings.Contains(w.said.String()+other.said.String(), "cannot be ended")
			})
			s.stays(wait)
			s.ok(os.Remove(s.path("hold")))
			w.wantExit(0)
			other.wantExit(0)
			s.eventuallyKinds(job, "enqueued claimed released claimed failed")
			third.signal(syscall.SIGTERM)
			third.wantExit(0)
		},
		"kill -9 of the worker": func(s rooted) {
			job := s.says("enqueue", "-q", "mail", "--max-runtime", "4s", "--max-attempts", "2", "x")
			w := s.work("--lease", "3s")
			s.oneRoot()
			w.signal(syscall.SIGKILL)
			other := s.work("--lease", "3s")
			sweeper := s.start(s.command("sweep", "--every", "100ms", "--grace", "500ms"))
			s.stays(wait)
			if said := s.says("why", job); !strings.Contains(said, "belongs to root") {
				s.Error(said)
			}
			s.ok(os.Remove(s.path("hold")))
			s.eventuallyKinds(job, "enqueued claimed reclaimed claimed failed")
			for _, p := range []*running{other, sweeper} {
				p.signal(syscall.SIGTERM)
				p.wantExit(0)
			}
		},
		"a cancel": func(s rooted) {
			job := s.says("enqueue", "-q", "mail", "--key", "k", "--unique-while", "unfinished", "x")
			child := s.says("enqueue", "-q", "other", "--after", job+":finished", "y")
			w := s.work("--lease", "3s", "-j", "2")
			why := fmt.Sprintf("pid %d (as-root) belongs to root", s.oneRoot())
			other := s.start(s.command("work", "-q", "other", "--", "true"))
			s.says("cancel", job)
			w.wantSaid("cannot be ended job=" + job)
			s.stays(wait)
			for _, words := range [][]string{{"show", job}, {"show", job, "--json"}, {"why", job}, {"workers"},
				{"workers", "--json"}, {"history", job}, {"status", "--json"}} {
				if said := s.says(words...); !strings.Contains(said, why) {
					s.Errorf("%s does not say %q: %s", strings.Join(words, " "), why, said)
				}
			}
			again := s.outcomeOf(s.command("enqueue", "-q", "mail", "--key", "k", "--unique-while", "unfinished", "z"))
			if again.code != 6 {
				s.Errorf("enqueue with the key of the command that lives: %d %s", again.code, again.stderr)
			}
			s.says("retry", job)
			s.stays(wait)
			if kinds := s.kinds(job) + s.kinds(child); strings.Contains(kinds, "stopped") || strings.Contains(
				s.kinds(child), "claimed") {
				s.Error(kinds)
			}
			s.ok(os.Remove(s.path("hold")))
			s.eventuallyKinds(job, "enqueued claimed cancelled retried stopped claimed failed")
			s.eventuallyKinds(child, "enqueued unblocked claimed succeeded")
			for _, p := range []*running{w, other} {
				p.signal(syscall.SIGTERM)
				p.wantExit(0)
			}
		},
		"a cancel, and kill -9 of the worker": func(s rooted) {
			job := s.says("enqueue", "-q", "mail", "x")
			w := s.work("--lease", "3s")
			s.oneRoot()
			s.says("cancel", job)
			w.wantSaid("cannot be ended job=" + job)
			w.signal(syscall.SIGKILL)
			s.says("retry", job)
			other := s.work("--lease", "3s")
			s.stays(wait)
			if said := s.says("show", job); !strings.Contains(said, "belongs to root") {
				s.Error(said)
			}
			s.ok(os.Remove(s.path("hold")))
			s.eventuallyKinds(job, "enqueued claimed cancelled retried claimed failed")
			other.signal(syscall.SIGTERM)
			other.wantExit(0)
		},
		"nothing is left that watches it": func(s rooted) {
			job := s.says("enqueue", "-q", "mail", "--max-runtime", "1s", "--max-attempts", "1", "x")
			w := s.work("--lease", "2s")
			pid := s.oneRoot()
			w.wantSaid("cannot be ended job=" + job)
			s.eventually("a heartbeat says so", func() bool {
				return strings.Contains(s.says("history", job), "cannot be ended")
			})
			w.signal(syscall.SIGKILL)
			s.ok(syscall.Kill(parentOf(s, pid), syscall.SIGKILL))
			sweeper := s.start(s.command("sweep", "--every", "100ms"))
			s.eventuallyKinds(job, "enqueued claimed reclaimed")
			if said := s.says("history", job, "--json"); !strings.Contains(said, fmt.Sprintf(
				`"still_running":"pid %d (as-root) belongs to root"`, pid)) {
				s.Error(said)
			}
			s.ok(os.Remove(s.path("hold")))
			sweeper.signal(syscall.SIGTERM)
			sweeper.wantExit(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "a cancel, and kill -9 of the worker" {
				ledgertest.Slow(t)
			}
			t.Parallel()
			s := newRooted(t)
			test(s)
			s.says("verify")
		})
	}
}

// parentOf returns the parent of a process.
func parentOf(s rooted, pid int) int {
	s.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	s.ok(err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	s.ok(err)
	return parent
}
