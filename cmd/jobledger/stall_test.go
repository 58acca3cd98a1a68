//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// These tests wait for real leases, so those of one kind go side by side: the machine has little to do meanwhile.

// named is a testing.TB for a goroutine, which says which of several it is, and whose fatal errors end only that.
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

// sideBySide runs tests at the same time, however few processors there are. Each has a rig with an empty ledger.
func sideBySide(t *testing.T, tests map[string]func(r rig)) {
	t.Helper()
	newRig(t) // builds the program
	var group sync.WaitGroup
	for name, test := range tests {
		group.Go(func() {
			r := newRig(named{t, name})
			r.fill(func(pantry) invocation { return invocation{} })
			test(r)
			r.nobodyLeft()
			r.history(db)
		})
	}
	group.Wait()
}

// untilTold is a command that goes on until there is a file "go". It notes when another one of the same job is there.
const untilTold = `echo $JOBLEDGER_ATTEMPT >>ran
exec 9>>alone; if command -v flock >/dev/null; then flock -n 9 || echo $JOBLEDGER_ATTEMPT >>overlaps; fi
echo $$ >>begun; until [ -e go ]; do sleep 0.1; done; exec cat`

// worker starts a worker of mail.
func (r rig) worker(name, lease string, more func(invocation) invocation) *running {
	r.Helper()
	i := invoke("work", "-q", "mail", "--worker", name, "--lease", lease, "--", "sh", "-c", untilTold)
	if more != nil {
		i = more(i)
	}
	return r.start(r.cmd(i))
}

// sweeper starts one that looks often.
func (r rig) sweeper(more func(invocation) invocation) *running {
	r.Helper()
	i := invoke("sweep", "--every", "100ms")
	if more != nil {
		i = more(i)
	}
	return r.start(r.cmd(i))
}

// letEnd lets processes end in their own time.
func (r rig) letEnd(processes ...*running) {
	r.Helper()
	for _, p := range processes {
		p.signal(syscall.SIGTERM)
		p.wantExit(0)
	}
}

// holdLock starts a process that stops with the write lock in hand, and returns when it has.
func (r rig) holdLock() *running {
	r.Helper()
	holder := r.start(r.cmd(invoke("enqueue", "-q", "other", "holder").dyingAt("commit=stop")))
	r.wantStopped(holder)
	return holder
}

const stall = 3 * time.Second

// stallFor lets the holder go on when it has been stopped for a stall at least.
func (r rig) stallFor(holder *running, since time.Time) {
	r.Helper()
	time.Sleep(time.Until(since.Add(stall)))
	holder.signal(syscall.SIGCONT)
	holder.wantExit(0)
}

// A process that is stopped with the write lock in its hand keeps everybody else from writing, for three seconds here.
func TestAStoppedLockHolder(t *testing.T) {
	t.Parallel()
	sideBySide(t, map[string]func(r rig){
		// Nobody can beat. The leases run out, and so does the grace: the sweepers are the first to wait for the lock, and
		// may not judge by what they saw, because the beats wait behind them. All are processes that run by then.
		"sweepers that had to wait look again": func(r rig) {
			const n = 4
			var jobs []projection.Job
			r.fill(func(p pantry) invocation {
				for range n {
					p.job("x")
				}
				var err error
				jobs, err = p.Claim(context.Background(), commands.ClaimRequest{Queues: []string{"mail"}, Limit: n,
					Worker: ledger.Worker{Name: "A", Boot: "B"}, Lease: 3 * time.Second})
				if err != nil {
					p.Error(err)
				}
				return invocation{}
			})
			var beats, sweepers []*running
			for _, j := range jobs {
				beats = append(beats, r.start(r.cmd(invoke("heartbeat", string(j.ID), "--token", j.Token, "--lease", "20s").dyingAt("begin=stop"))))
			}
			holder, since := r.holdLock(), time.Now()
			for range 2 {
				sweepers = append(sweepers, r.sweeper(func(i invocation) invocation { return i.dyingAt("looked=stop") }))
			}
			for _, p := range slices.Concat(beats, sweepers) { // the latter when the grace is over
				r.wantStopped(p)
			}
			for _, s := range sweepers {
				s.signal(syscall.SIGCONT)
			}
			time.Sleep(500 * time.Millisecond) // longer than a sweeper waits for the lock and does not look again
			for _, b := range beats {
				b.signal(syscall.SIGCONT)
			}
			time.Sleep(200 * time.Millisecond)
			r.stallFor(holder, since)
			for _, b := range beats {
				b.wantExit(0)
			}
			r.letEnd(sweepers...)
			if got := r.count(ledger.KindReclaimed); got != 0 {
				r.Errorf("%d live jobs were reclaimed", got)
			}
			if time.Since(since) < stall {
				r.Errorf("that was no stall")
			}
		},
		"a worker whose lease is long enough beats again": func(r rig) {
			r.enqueueOne()
			worker, sweeper := r.worker("A", "12s", nil), r.sweeper(nil)
			r.pids("begun", 1)
			time.Sleep(2 * time.Second) // the first beat is due at four
			holder, since := r.holdLock(), time.Now()
			r.stallFor(holder, since)
			r.eventually("it beats again", func() bool { return r.count(ledger.KindHeartbeat) > 0 })
			r.touch("go")
			r.eventually("it succeeds", func() bool { return r.count(ledger.KindSucceeded) == 1 })
			r.letEnd(worker, sweeper)
			if got := r.count(ledger.KindClaimed, ledger.KindReclaimed, ledger.KindRefused); got != 1 {
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
			r.eventually("another attempt succeeds", func() bool { return r.count(ledger.KindSucceeded) == 1 })
			r.letEnd(worker, sweeper)
			if _, err := os.Stat(r.path("overlaps")); err == nil || r.attempts() != "1 2" {
				r.Errorf("ran %q, and at the same time: %v", r.attempts(), err == nil)
			}
		},
		// Its token decides: nobody could have reclaimed meanwhile. To the sweeper the lease, which is so long that no beat
		// comes before the end, is over.
		"a worker that is the holder keeps its job": func(r rig) {
			r.enqueueOne()
			r.touch("go")
			worker := r.worker("A", "30s", func(i invocation) invocation { return i.dyingAt("commit:3=stop") })
			r.wantStopped(worker)
			since := time.Now()
			sweeper := r.sweeper(func(i invocation) invocation { return i.with("--grace", "500ms").ahead(time.Hour) })
			time.Sleep(time.Until(since.Add(stall)))
			worker.signal(syscall.SIGCONT)
			r.eventually("it succeeds", func() bool { return r.count(ledger.KindSucceeded) == 1 })
			r.letEnd(worker, sweeper)
			if got := r.count(ledger.KindReclaimed, ledger.KindRefused); got != 0 || r.attempts() != "1" {
				r.Errorf("ran %q; %s", r.attempts(), kindsOf(r.history(db)))
			}
		},
		"a holder that is killed is no holder": func(r rig) {
			holder := r.holdLock()
			waiting := r.start(r.cmd(invoke("enqueue", "-q", "mail", "x")))
			time.Sleep(time.Second)
			holder.signal(syscall.SIGKILL)
			waiting.wantExit(0)
			if got := kindsOf(r.history(db)); got != "enqueued" {
				r.Errorf("%s", got)
			}
		},
	})
}

// zombies are the steps at which a worker is stopped until another one has done its job, and the attempts whose command
// is started all the same, in order.
var zombies = map[string]string{
	"group-ends:1":   "2",
	"task-begins":    "2",
	"child-runs":     "1 2",
	"child-ended":    "1 2",
	"task-ends":      "1 2",
	"group-begins:2": "1 2",
	"begin:3":        "1 2",
}

// A worker that was frozen at any step of its job, past its lease, changes nothing when it comes back: it starts no
// command, and what it still wants to write is refused, and recorded as that.
func TestAZombieOfEachStep(t *testing.T) {
	t.Parallel()
	tests := make(map[string]func(r rig))
	for step, ran := range zombies {
		tests[step] = func(r rig) {
			r.enqueueOne()
			if step == "child-runs" {
				r.touch("wait")
			}
			command := []string{"--once", "--", "sh", "-c", sayAttempt + "; echo by $JOBLEDGER_WORKER"}
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
				case ledger.KindRefused: // a beat, or the end
					refused++
				case ledger.KindSucceeded:
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
	sideBySide(t, tests)
}

// A signal that comes when the worker has ended already does not make a death of that.
func TestALateSignalIsNoDeath(t *testing.T) {
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

// A clock that is wrong, or jumps, costs no live job: the sweeper's grace is by no clock that anybody can set. The job
// goes on for longer than its lease, and than the grace.
func TestAWrongClock(t *testing.T) {
	t.Parallel()
	tests := make(map[string]func(r rig))
	for name, wrong := range map[string]struct{ worker, sweeper, workerThen, sweeperThen time.Duration }{
		"the sweeper's is ahead":      {sweeper: time.Hour, sweeperThen: time.Hour},
		"the sweeper's is late":       {sweeper: -time.Hour, sweeperThen: -time.Hour},
		"the sweeper's jumps ahead":   {sweeperThen: time.Hour},
		"the sweeper's jumps back":    {sweeper: time.Hour},
		"the worker's jumps ahead":    {workerThen: time.Hour},
		"the worker's jumps back":     {workerThen: -time.Hour},
		"everybody's jumps ahead":     {workerThen: time.Hour, sweeperThen: time.Hour},
		"everybody's jumps back":      {workerThen: -time.Hour, sweeperThen: -time.Hour},
		"they jump away from another": {workerThen: -time.Hour, sweeperThen: time.Hour},
	} {
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
			time.Sleep(500 * time.Millisecond)
			set("worker-clock", wrong.workerThen)
			set("sweeper-clock", wrong.sweeperThen)
			beats := r.count(ledger.KindHeartbeat)
			r.must(0, invoke("events", "--follow", "--kind", "heartbeat", "--limit", fmt.Sprint(beats+4)))
			r.touch("go")
			r.eventually("it succeeds", func() bool { return r.count(ledger.KindSucceeded) == 1 })
			r.letEnd(worker, sweeper)
			if got := r.count(ledger.KindReclaimed, ledger.KindRefused); got != 0 || r.attempts() != "1" {
				r.Errorf("ran %q; %s", r.attempts(), kindsOf(r.history(db)))
			}
		}
	}
	// What the grace is for.
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
	sideBySide(t, tests)
}

// A script beats now and then, and says nothing of how long: a clock that was set back does not make its lease shorter
// than its pauses.
func TestAHeartbeatByAClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var j projection.Job
	r.fill(func(p pantry) invocation { j = p.held("x"); return invocation{} })
	beat := invoke("heartbeat", string(j.ID), "--token", j.Token).ahead(-time.Hour)
	for range 3 {
		began := time.Now().Add(-time.Hour)
		r.must(0, beat)
		events := r.history(db)
		b := events[len(events)-1].Body.(*ledger.Heartbeat)
		if got := b.LeaseUntil.Sub(began); got < time.Minute-time.Second || got > 2*time.Minute {
			t.Errorf("a lease of %v", got)
		}
	}
}
