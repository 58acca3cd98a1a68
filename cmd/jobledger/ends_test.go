//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// These tests cancel a job whose worker is frozen, so that its command runs on. Nothing that must not run at
// the same time starts before that has ended.

// unendedSite is a ledger on the engine of the tests.
type unendedSite struct{ site }

func newUnended(t *testing.T) unendedSite {
	t.Helper()
	s := site{TB: t, dir: t.TempDir()}
	if ledgertest.OnPostgres(t) {
		s.env = []string{"JOBLEDGER_DB=" + ledgertest.Postgres(t)}
	}
	s.run("init")
	return unendedSite{s}
}

func (r unendedSite) work(name, queue, lease string) *running {
	r.Helper()
	return r.start(r.command("work", "-q", queue, "--worker", name, "--lease", lease, "--kill-after", "500ms",
		"--", "sh", "-c", aloneUntilGo))
}

// freeze stops a worker.
func (r unendedSite) freeze(w *running) {
	r.Helper()
	w.signal(syscall.SIGSTOP)
	r.eventually("the worker is stopped", func() bool { return stopped(w.Process.Pid) })
}

// frozen enqueues a job, and freezes its worker A while the command runs, which ignores TERM. The lease is so
// long that it does not end within a test, unless it is said.
func (r unendedSite) frozen(lease string, words ...string) (job string, a *running) {
	r.Helper()
	job = r.enqueue(append(words, "parent")...)
	a = r.work("A", "mail", lease)
	r.pids("begun", 1)
	r.beaten(job)
	r.freeze(a)
	return job, a
}

// waits requires for a while that no second command begins.
func (r unendedSite) waits() {
	r.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // pause of a poll
		if text, _ := os.ReadFile(r.path("begun")); strings.Count(string(text), "\n") != 1 {
			r.Fatalf("another command began: %s\n%s", text, r.run("events"))
		}
	}
}

// ends thaws the worker A, and requires that a second command begins soon, and only when the first has ended.
func (r unendedSite) ends(a *running, others ...*running) {
	r.Helper()
	a.signal(syscall.SIGCONT)
	began := time.Now()
	r.pids("begun", 2)
	if took := time.Since(began); took > 20*time.Second {
		r.Errorf("the next command began after %s", took)
	}
	r.over(a, others...)
}

func (r unendedSite) over(a *running, others ...*running) {
	r.Helper()
	if _, err := os.Stat(r.path("overlaps")); err == nil {
		r.Errorf("two commands ran at once:\n%s", r.run("events"))
	}
	r.touch("go")
	for _, p := range append(others, a) {
		p.signal(syscall.SIGTERM)
		p.wantExit(0)
	}
	r.run("verify")
	r.run("rebuild")
	r.run("verify")
}

func TestDependentWaitsForCancelledCommand(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	for name, test := range map[string]func(r unendedSite){
		"enqueued before the cancel": func(r unendedSite) {
			parent, a := r.frozen("60s")
			child := r.run("enqueue", "-q", "next", "--after", parent+":finished", "child")
			r.run("cancel", parent)
			b := r.work("B", "next", "60s")
			r.waits()
			if said := r.run("why", child); !strings.Contains(said, "the command of job "+parent) {
				r.Error(said)
			}
			r.ends(a, b)
		},
		"enqueued after the cancel": func(r unendedSite) {
			parent, a := r.frozen("60s")
			r.run("cancel", parent)
			r.run("enqueue", "-q", "next", "--after", parent+":finished", "child")
			b := r.work("B", "next", "60s")
			r.waits()
			r.ends(a, b)
		},
		"it waits for another one too": func(r unendedSite) {
			parent, a := r.frozen("60s")
			other := r.run("enqueue", "-q", "other", "--run-at", "2100-01-01T00:00:00Z", "x")
			r.run("enqueue", "-q", "next", "--after", parent+":finished", "--after", other+":finished", "child")
			r.run("cancel", parent)
			r.run("cancel", other)
			b := r.work("B", "next", "60s")
			r.waits()
			r.ends(a, b)
		},
		"it is held": func(r unendedSite) {
			parent, a := r.frozen("60s")
			child := r.run("enqueue", "-q", "next", "--after", parent+":finished", "--hold", "child")
			r.run("cancel", parent)
			r.run("unblock", child)
			b := r.work("B", "next", "60s")
			r.waits()
			r.ends(a, b)
		},
		"the worker freezes after the cancel": func(r unendedSite) { // between TERM and KILL
			parent := r.enqueue("parent")
			child := r.run("enqueue", "-q", "next", "--after", parent+":finished", "child")
			a := r.start(r.command("work", "-q", "mail", "--worker", "A", "--lease", "60s", "--kill-after", "3s", "--",
				"sh", "-c", strings.Replace(aloneUntilGo, "trap ''", "trap 'echo >termed'", 1)))
			r.pids("begun", 1)
			r.run("cancel", parent)
			r.eventually("its TERM", func() bool { _, err := os.Stat(r.path("termed")); return err == nil })
			r.freeze(a)
			b := r.work("B", "next", "60s")
			r.waits()
			if said := r.run("why", child); !strings.Contains(said, "the command of job "+parent) {
				r.Error(said)
			}
			r.ends(a, b)
		},
		"the lease ends": func(r unendedSite) {
			parent, a := r.frozen("6s")
			r.run("enqueue", "-q", "next", "--after", parent+":finished", "child")
			r.run("cancel", parent)
			b := r.work("B", "next", "60s")
			r.pids("begun", 2)
			a.signal(syscall.SIGCONT)
			r.over(a, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "the worker freezes after the cancel" && name != "the lease ends" {
				ledgertest.Slow(t)
			}
			t.Parallel()
			test(newUnended(t))
		})
	}
}

func TestScheduleWaitsForCancelledCommand(t *testing.T) {
	t.Parallel()
	for _, overlap := range []string{"skip", "wait", "replace"} {
		t.Run(overlap, func(t *testing.T) {
			if overlap != "wait" {
				ledgertest.Slow(t)
			}
			t.Parallel()
			r := newUnended(t)
			r.run("schedule", "set", "often", "-q", "mail", "--every", "4s", "--overlap", overlap, "parent")
			a := r.work("A", "mail", "60s")
			r.pids("begun", 1)
			var job string
			r.eventually("the first heartbeat", func() bool {
				job = r.ran("list", "--state", "running", "--json").stdout
				return strings.Contains(job, `"id":"`)
			})
			r.freeze(a)
			if overlap != "replace" {
				_, rest, _ := strings.Cut(job, `"id":"`)
				r.run("cancel", rest[:26])
			}
			b := r.work("B", "mail", "60s")
			r.waits()
			r.ends(a, b)
		})
	}
}

func TestLimitCountsCancelledCommand(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]string{"of the queue": {"--running", "1"},
		"of the group": {"--per-group", "1"}} {
		t.Run(name, func(t *testing.T) {
			if name != "of the queue" {
				ledgertest.Slow(t)
			}
			t.Parallel()
			r := newUnended(t)
			r.run(append([]string{"limit", "-q", "mail"}, words...)...)
			parent, a := r.frozen("60s", "--group", "acme")
			r.enqueue("--group", "acme", "next")
			r.run("cancel", parent)
			b := r.work("B", "mail", "60s")
			r.waits()
			r.ends(a, b)
		})
	}
}

func TestUniqueKeyOfCancelledCommand(t *testing.T) {
	t.Parallel()
	ledgertest.Slow(t)
	r := newUnended(t)
	parent, a := r.frozen("60s", "--key", "k", "--unique-while", "unfinished")
	other := []string{"enqueue", "-q", "mail", "--key", "k", "--unique-while", "unfinished", "next"}
	r.run("cancel", parent)
	for _, more := range [][]string{nil, {"--on-duplicate", "ignore"}, {"--on-duplicate", "replace"}} {
		got := r.ran(append(other, more...)...)
		if got.code != cli.ExitConflict || !strings.Contains(got.stderr, "its command may run until 20") {
			t.Errorf("%q: exit code %d: %s", more, got.code, got.stderr)
		}
	}
	b := r.work("B", "mail", "60s")
	a.signal(syscall.SIGCONT)
	r.eventually("its end", func() bool { return strings.Contains(r.events(parent), "stopped") })
	r.run(other...)
	r.ends(a, b)
}
