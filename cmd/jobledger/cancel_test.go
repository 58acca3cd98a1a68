//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

// aloneUntilGo is a command that ignores TERM and runs until the file "go" exists. It records its start, and
// whether another command of the same job is running. With the payload "quick" it ends at once.
const aloneUntilGo = `read -r what || :; if [ "$what" = quick ]; then exit; fi
exec 9>>alone; if command -v flock >/dev/null; then flock -n 9 || echo $JOBLEDGER_ATTEMPT >>overlaps; fi
trap '' TERM; echo $$ >>begun; until [ -e go ]; do sleep 0.1; done`

// cancelRig is a rig on the engine of the tests, on which two workers run aloneUntilGo.
type cancelRig struct{ rig }

func newCancelRig(t *testing.T) cancelRig {
	t.Helper()
	r := newRig(t)
	if ledgertest.OnPostgres(t) {
		r.env = []string{"JOBLEDGER_DB=" + ledgertest.Postgres(t)}
	}
	r.run("init")
	return cancelRig{r}
}

func (r cancelRig) work(name, lease, failpoint string) *running {
	r.Helper()
	cmd := r.cmd(invoke("work", "-q", "mail", "--worker", name, "--lease", lease, "--", "sh", "-c",
		aloneUntilGo).dyingAt(failpoint))
	cmd.Env = append(cmd.Env, r.env...)
	return r.start(cmd)
}

// cancelled enqueues a job and cancels it while its command runs under a worker A, which must be stopped or
// killed soon after. Then it starts an idle worker B.
func (r cancelRig) cancelled(lease, failpoint string) (job string, a, b *running) {
	r.Helper()
	job = r.enqueue("job")
	a = r.work("A", lease, failpoint)
	r.pids("begun", 1)
	if failpoint == "" {
		r.beaten(job)
		a.signal(syscall.SIGSTOP)
		r.wantStopped(a)
	}
	r.run("cancel", job)
	b = r.work("B", "60s", "")
	if failpoint == "child-ended=stop" {
		r.wantStopped(a)
	}
	return job, a, b
}

// wantPassedOver checks that the running worker B does not claim the job.
func (r cancelRig) wantPassedOver(job string) {
	r.Helper()
	quick := r.enqueue("quick", "--priority", "-1")
	r.run("wait", quick, "--timeout", "60s")
	r.wantJob(job, `"state":"queued"`, `"attempt":1`)
	got := r.run("status")
	if !strings.Contains(got, "mail: 1 command may still run although its claim was lost") {
		r.Errorf("status does not show the command:\n%s", got)
	}
	if got = r.run("workers"); !strings.Contains(got, "("+job+")") {
		r.Errorf("workers does not show the command:\n%s", got)
	}
}

// wantEnd makes the second command end, and compares the events of the job.
func (r cancelRig) wantEnd(job, events string, processes ...*running) {
	r.Helper()
	r.pids("begun", 2)
	if _, err := os.Stat(r.path("overlaps")); err == nil {
		r.Errorf("two commands of the job ran at once:\n%s", r.run("history", job))
	}
	r.touch("go")
	r.run("wait", job, "--timeout", "60s")
	r.letEnd(processes...)
	r.wantEvents(job, events)
	r.run("verify")
}

// A retry of a cancelled job never starts its command while the cancelled command runs, whatever delays the
// end of that command or its report.
func TestRetryWaitsForCancelledCommand(t *testing.T) {
	t.Parallel()
	t.Run("worker frozen", func(t *testing.T) {
		t.Parallel()
		r := newCancelRig(t)
		job, a, b := r.cancelled("60s", "")
		r.run("retry", job)
		r.wantPassedOver(job)
		a.signal(syscall.SIGCONT)
		r.wantEnd(job, "enqueued claimed cancelled retried stopped rescheduled claimed succeeded", a, b)
	})
	t.Run("worker stopped before it records the end", func(t *testing.T) {
		t.Parallel()
		r := newCancelRig(t)
		job, a, b := r.cancelled("60s", "child-ended=stop")
		r.run("retry", job)
		r.wantPassedOver(job)
		a.signal(syscall.SIGCONT)
		r.wantEnd(job, "enqueued claimed cancelled retried stopped rescheduled claimed succeeded", a, b)
	})
	t.Run("worker killed before it records the end", func(t *testing.T) {
		t.Parallel()
		r := newCancelRig(t)
		job, a, b := r.cancelled("5s", "child-ended")
		<-a.exited
		r.run("retry", job)
		r.wantEnd(job, "enqueued claimed cancelled retried claimed succeeded", b)
	})
}

// With --now a retry does not wait, even though the cancelled command still runs.
func TestRetryNowDoesNotWait(t *testing.T) {
	t.Parallel()
	r := newCancelRig(t)
	job, a, b := r.cancelled("60s", "")
	r.run("retry", job, "--now")
	pids := r.pids("begun", 2)
	if gone(pids[:1]) {
		t.Error("the first command does not run any more")
	}
	a.signal(syscall.SIGCONT)
	r.eventually("the first command ends", func() bool { return gone(pids[:1]) })
	r.touch("go")
	r.run("wait", job, "--timeout", "60s")
	r.letEnd(a, b)
	got := unbeaten(r.events(job))
	if !strings.Contains(got, " stopped") || !strings.HasSuffix(got, "succeeded") {
		t.Errorf("events of the job: %s", got)
	}
	r.run("verify")
}

// A cancel asks a command to end: TERM, and KILL only after --kill-after.
func TestCancelSendsTermFirst(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ trap, end string }{
		"a command that ends":  {"trap 'echo cleaned >cleaned; exit 4' TERM", `"exit_code":4`},
		"a command that stays": {"trap 'echo cleaned >cleaned' TERM", `"signal":"SIGKILL"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			job := s.enqueue("x")
			w := s.work("--kill-after", "1s", "--", "sh", "-c", test.trap+
				"; echo $$ >>begun; while :; do sleep 0.02; done")
			s.pids("begun", 1)
			began := time.Now()
			s.run("cancel", job)
			s.eventually("the end is recorded", func() bool { return strings.Contains(s.events(job), "stopped") })
			if took := time.Since(began); strings.Contains(test.end, "KILL") && took < time.Second {
				t.Errorf("killed after %s", took)
			}
			if said := s.run("history", job, "--json"); !strings.Contains(said, test.end) {
				t.Errorf("it did not end with %s: %s", test.end, said)
			}
			if text, err := os.ReadFile(s.path("cleaned")); string(text) != "cleaned\n" {
				t.Errorf("%q, %v", text, err)
			}
			w.signal(syscall.SIGTERM)
			w.wantExit(0)
			s.run("verify")
		})
	}
}
