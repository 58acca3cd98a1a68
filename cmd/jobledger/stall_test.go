//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// These tests wait for real leases. Those of one kind run concurrently, because the machine is idle
// meanwhile.

// named is a testing.TB for one of several goroutines: it adds the name of the goroutine, and a fatal error
// ends only that.
type named struct {
	testing.TB
	name string
}

func (n named) Error(args ...any) { n.Helper(); n.Errorf("%s", fmt.Sprint(args...)) }
func (n named) Fatal(args ...any) { n.Helper(); n.Fatalf("%s", fmt.Sprint(args...)) }
func (n named) FailNow()          { n.Fail(); runtime.Goexit() }

func (n named) Errorf(format string, args ...any) {
	n.Helper()
	n.TB.Errorf(n.name+": "+format, args...)
}

func (n named) Fatalf(format string, args ...any) {
	n.Helper()
	n.Errorf(format, args...)
	n.FailNow()
}

// runConcurrently runs tests concurrently, however few processors there are. Each has a rig with an empty
// ledger.
func runConcurrently(t *testing.T, tests map[string]func(r rig)) {
	t.Helper()
	newRig(t) // builds the program
	var group sync.WaitGroup
	for name, test := range tests {
		group.Go(func() {
			r := newRig(named{t, name})
			r.fill(func(serviceRig) invocation { return invocation{} })
			test(r)
			r.noProcessLeft()
			r.history(db)
		})
	}
	group.Wait()
}

// noteUntilGo is a command that runs until there is a file "go". It records whether another one of the same
// job is running.
const noteUntilGo = `echo $JOBLEDGER_ATTEMPT >>ran
exec 9>>alone; if command -v flock >/dev/null; then flock -n 9 || echo $JOBLEDGER_ATTEMPT >>overlaps; fi
echo $$ >>begun; until [ -e go ]; do sleep 0.1; done; exec cat`

// worker starts a worker of the queue mail.
func (r rig) worker(name, lease string, more func(invocation) invocation) *running {
	r.Helper()
	i := invoke("work", "-q", "mail", "--worker", name, "--lease", lease, "--", "sh", "-c", noteUntilGo)
	if more != nil {
		i = more(i)
	}
	return r.start(r.cmd(i))
}

// sweeper starts a sweeper with a short interval.
func (r rig) sweeper(more func(invocation) invocation) *running {
	r.Helper()
	i := invoke("sweep", "--every", "100ms")
	if more != nil {
		i = more(i)
	}
	return r.start(r.cmd(i))
}

// letEnd waits for the end of processes.
func (r rig) letEnd(processes ...*running) {
	r.Helper()
	for _, p := range processes {
		p.signal(syscall.SIGTERM)
		p.wantExit(0)
	}
}

// holdLock starts a process that stops itself while it holds the write lock, and returns when it has.
func (r rig) holdLock() *running {
	r.Helper()
	holder := r.start(r.cmd(invoke("enqueue", "-q", "other", "holder").dyingAt("commit=stop")))
	r.wantStopped(holder)
	return holder
}

const stall = 3 * time.Second

// stallFor continues the holder when it has been stopped for at least one stall.
func (r rig) stallFor(holder *running, since time.Time) {
	r.Helper()
	time.Sleep(time.Until(since.Add(stall))) // the stall itself, in real time
	holder.signal(syscall.SIGCONT)
	holder.wantExit(0)
}

// A process that is stopped while it holds the write lock blocks all writers, here for three seconds.
func TestStallLockHolder(t *testing.T) {
	t.Parallel()
	runConcurrently(t, map[string]func(r rig){
		// No heartbeat gets through. The leases run out, and so does the grace. The sweepers are the first in the
		// write queue, but must not act on what they read before, because the heartbeats wait after them. All
		// processes are running by then.
		"sweepers that had to wait look again": func(r rig) {
			const n = 4
			var jobs []projection.Job
			r.fill(func(p serviceRig) invocation {
				for range n {
					p.job("x")
				}
				var err error
				jobs, err = p.Claim(context.Background(), commands.ClaimRequest{Queues: []string{"mail"}, Limit: n,
					Worker: event.Worker{Name: "A", Boot: "B"}, Lease: 3 * time.Second})
				if err != nil {
					p.Error(err)
				}
				return invocation{}
			})
			var beats, sweepers []*running
			for _, j := range jobs {
				beats = append(beats, r.start(r.cmd(invoke("heartbeat", string(j.ID), "--token", j.Token, "--lease",
					"20s").dyingAt("begin=stop"))))
			}
			holder, since := r.holdLock(), time.Now()
			for range 2 {
				sweepers = append(sweepers, r.sweeper(func(i invocation) invocation { return i.dyingAt("looked=stop") }))
			}
			for _, p := range slices.Concat(beats, sweepers) { // the sweepers when the grace is over
				r.wantStopped(p)
			}
			for _, s := range sweepers {
				s.signal(syscall.SIGCONT)
			}
			time.Sleep(500 * time.Millisecond) // longer than a sweeper waits for the lock without reading again
			for _, b := range beats {
				b.signal(syscall.SIGCONT)
			}
			time.Sleep(200 * time.Millisecond) // heartbeats queue up behind the lock
			r.stallFor(holder, since)
			for _, b := range beats {
				b.wantExit(0)
			}
			r.letEnd(sweepers...)
			if got := r.count(event.KindReclaimed); got != 0 {
				r.Errorf("%d live jobs were reclaimed", got)
			}
			if time.Since(since) < stall {
				r.Errorf("that was not a stall")
			}
		},
		"a worker whose lease is long enough beats again": func(r rig) {
			r.enqueueOne()
			worker, sweeper := r.worker("A", "12s", nil), r.sweeper(nil)
			r.pids("begun", 1)
			time.Sleep(2 * time.Second) // the first beat has come; the next is due four seconds after it
			beats := r.count(event.KindHeartbeat)
			holder, since := r.holdLock(), time.Now()
			r.stallFor(holder, since)
			r.eventually("it beats again", func() bool { return r.count(event.KindHeartbeat) > beats })
			r.touch("go")
			r.eventually("it succeeds", func() bool { return r.count(event.KindSucceeded) == 1 })
			r.letEnd(worker, sweeper)
			if got := r.count(event.KindClaimed, event.KindReclaimed, event.KindRefused); got != 1 {
				r.Errorf("it was not one claim from the beginning to the end: %s", kindsOf(r.history(db)))
			}
		},
		"a worker whose lease is short ends its command": func(r rig) {
			r.enqueueOne()
			worker, sweeper := r.worker("A", "6s", nil), r.sweeper(nil)
			pids := r.pids("begun", 1)
			holder, since := r.holdLock(), time.Now()
			r.eventually("the command ends", func() bool { return gone(pids) })
			if d := time.Since(since); d > 11*time.Second {
				r.Errorf("the command outlived its lease of 6s: it ended after %v", d)
			}
			r.stallFor(holder, since)
			r.touch("go")
			r.eventually("another attempt succeeds", func() bool { return r.count(event.KindSucceeded) == 1 })
			r.letEnd(worker, sweeper)
			if _, err := os.Stat(r.path("overlaps")); err == nil || r.attempts() != "1 2" {
				r.Errorf("ran %q, and at the same time: %v", r.attempts(), err == nil)
			}
		},
		// The token decides: no process could reclaim the job meanwhile. For the sweeper the lease is over; it is
		// so long that no heartbeat comes before the end.
		"a worker that is the holder keeps its job": func(r rig) {
			r.enqueueOne()
			r.touch("go")
			worker := r.worker("A", "30s", func(i invocation) invocation { return i.dyingAt("commit:3=stop") })
			r.wantStopped(worker)
			since := time.Now()
			sweeper := r.sweeper(func(i invocation) invocation { return i.with("--grace", "500ms").ahead(time.Hour) })
			time.Sleep(time.Until(since.Add(stall))) // the stall itself, in real time
			worker.signal(syscall.SIGCONT)
			r.eventually("it succeeds", func() bool { return r.count(event.KindSucceeded) == 1 })
			r.letEnd(worker, sweeper)
			if got := r.count(event.KindReclaimed, event.KindRefused); got != 0 || r.attempts() != "1" {
				r.Errorf("ran %q; %s", r.attempts(), kindsOf(r.history(db)))
			}
		},
		"a holder that is killed is not a holder": func(r rig) {
			holder := r.holdLock()
			waiting := r.start(r.cmd(invoke("enqueue", "-q", "mail", "x")))
			time.Sleep(time.Second) // the write waits for the lock meanwhile
			holder.signal(syscall.SIGKILL)
			waiting.wantExit(0)
			if got := kindsOf(r.history(db)); got != "enqueued" {
				r.Errorf("%s", got)
			}
		},
	})
}

// zombies are the steps at which a worker is stopped until another one has done its job, and the attempts
// whose command is started nevertheless, in order.
var zombies = map[string]string{
	"group-ends:1":   "2",
	"task-begins":    "2",
	"child-runs":     "1 2",
	"child-ended":    "1 2",
	"task-ends":      "1 2",
	"group-begins:2": "1 2",
	"begin:3":        "1 2",
}

// A worker that was stopped at any step of its job until its lease had run out changes nothing when it
// continues. It starts no command, and its late writes are refused and recorded as such.
func TestStallWorkerAtEachStep(t *testing.T) {
	t.Parallel()
	tests := make(map[string]func(r rig))
	for _, step := range ledgertest.Sample(slices.Sorted(maps.Keys(zombies)), 2) {
		ran := zombies[step]
		tests[step] = func(r rig) {
			r.enqueueOne()
			if step == "child-runs" {
				r.touch("wait")
			}
			command := []string{"--once", "--", "sh", "-c", printAttempt + "; echo by $JOBLEDGER_WORKER"}
			work := invoke("work", "-q", "mail", "--lease", "6s")
			a := r.start(r.cmd(work.with("--worker", "A").with(command...).dyingAt(step + "=stop")))
			r.wantStopped(a)
			r.expire()
			_ = os.Remove(r.path("wait"))
			r.must(0, work.with("--worker", "B").with(command...).ahead(time.Hour))
			a.signal(syscall.SIGCONT)
			a.wantExit(0)
			if step == "task-ends" {
				a.wantSaid("end refused")
			}
			refused, winner := 0, ""
			for _, e := range r.history(db) {
				switch e.Kind() {
				case event.KindRefused: // a heartbeat, or the end
					refused++
				case event.KindSucceeded:
					winner += e.Worker.Name
				}
			}
			if winner != "B" || r.attempts() != ran {
				r.Errorf("succeeded by %q, ran %q, want B and %s", winner, r.attempts(), ran)
			}
			if ended := step != "child-runs" && ran == "1 2"; ended && refused == 0 {
				r.Error("it had an end to record, and no refusal is there")
			}
		}
	}
	runConcurrently(t, tests)
}

// A signal that comes after the end of the worker does not change its exit code.
func TestWorkIgnoresLateSecondSignal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueueOne()
	w := r.start(r.cmd(invoke("work", "-q", "mail", "--drain", "--", "true").dyingAt("over=stop")))
	r.wantStopped(w)
	w.signal(syscall.SIGTERM)
	w.signal(syscall.SIGCONT)
	w.wantExit(0)
	w.wantSaid("1 succeeded")
	if got := kindsOf(r.history(db)); !strings.HasSuffix(got, "succeeded worker_stopped") {
		t.Errorf("%s", got)
	}
}

// A clock that is wrong, or jumps, costs no live job its claim: the sweeper measures its grace period by a
// monotonic clock. The job runs for longer than its lease and the grace period.
func TestWorkerClockSkew(t *testing.T) {
	t.Parallel()
	tests := make(map[string]func(r rig))
	clocks := map[string]struct{ worker, sweeper, workerThen, sweeperThen time.Duration }{
		"the sweeper's is ahead":      {sweeper: time.Hour, sweeperThen: time.Hour},
		"the sweeper's is late":       {sweeper: -time.Hour, sweeperThen: -time.Hour},
		"the sweeper's jumps ahead":   {sweeperThen: time.Hour},
		"the sweeper's jumps back":    {sweeper: time.Hour},
		"the worker's jumps ahead":    {workerThen: time.Hour},
		"the worker's jumps back":     {workerThen: -time.Hour},
		"every clock jumps ahead":     {workerThen: time.Hour, sweeperThen: time.Hour},
		"every clock jumps back":      {workerThen: -time.Hour, sweeperThen: -time.Hour},
		"they jump away from another": {workerThen: -time.Hour, sweeperThen: time.Hour},
	}
	for _, name := range ledgertest.Sample(slices.Sorted(maps.Keys(clocks)), 3) {
		wrong := clocks[name]
		tests[name] = func(r rig) {
			set := func(file string, ahead time.Duration) {
				if err := os.WriteFile(r.path(file+"-new"), []byte(ahead.String()), 0o600); err != nil {
					r.Error(err)
				}
				if err := os.Rename(r.path(file+"-new"), r.path(file)); err != nil {
					r.Error(err)
				}
			}
			set("worker-clock", wrong.worker)
			set("sweeper-clock", wrong.sweeper)
			r.enqueueOne()
			worker := r.worker("A", "6s", func(i invocation) invocation { return i.clockFrom("worker-clock") })
			sweeper := r.sweeper(func(i invocation) invocation { return i.clockFrom("sweeper-clock") })
			r.pids("begun", 1)
			time.Sleep(500 * time.Millisecond) // the clock jumps in the middle of the run
			set("worker-clock", wrong.workerThen)
			set("sweeper-clock", wrong.sweeperThen)
			beats := r.count(event.KindHeartbeat)
			r.must(0, invoke("events", "--follow", "--kind", "heartbeat", "--limit", fmt.Sprint(beats+4)))
			r.touch("go")
			r.eventually("it succeeds", func() bool { return r.count(event.KindSucceeded) == 1 })
			r.letEnd(worker, sweeper)
			if got := r.count(event.KindReclaimed, event.KindRefused); got != 0 || r.attempts() != "1" {
				r.Errorf("ran %q; %s", r.attempts(), kindsOf(r.history(db)))
			}
		}
	}
	// This is the purpose of the grace.
	tests["without a grace it would be lost"] = func(r rig) {
		r.enqueueOne()
		worker := r.worker("A", "20s", nil)
		r.pids("begun", 1)
		if got := r.must(0, invoke("sweep", "--grace", "0s").ahead(time.Hour)); got != "1" {
			r.Errorf("swept %s", got)
		}
		worker.signal(syscall.SIGKILL)
		worker.wantExit(-1)
	}
	runConcurrently(t, tests)
}

// A script sends heartbeats without giving a lease. A clock that was set back does not make the lease shorter
// than the pauses between them.
func TestHeartbeatClockSetBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var j projection.Job
	r.fill(func(p serviceRig) invocation { j = p.held("x"); return invocation{} })
	beat := invoke("heartbeat", string(j.ID), "--token", j.Token).ahead(-time.Hour)
	for range 3 {
		began := time.Now().Add(-time.Hour)
		r.must(0, beat)
		events := r.history(db)
		b := events[len(events)-1].Body.(*event.Heartbeat)
		if got := b.LeaseUntil.Sub(began); got < time.Minute-time.Second || got > 2*time.Minute {
			t.Errorf("a lease of %v", got)
		}
	}
}
