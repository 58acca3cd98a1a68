//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// workSteps are the failpoints of a worker that runs one job and ends.
var workSteps = []string{"begun", "commit", "committed", "answer", "group-begins", "group-ends",
	"task-begins", "child-runs", "child-ended", "task-ends"}

// printAttempt is a command that records its run, waits until the file "wait" is removed, and then prints the
// payload as its result.
const printAttempt = `echo $JOBLEDGER_ATTEMPT >>ran; while [ -e wait ]; do sleep 0.02; done; exec cat`

// attempts returns the attempts whose command was started.
func (r rig) attempts() string {
	text, _ := os.ReadFile(r.path("ran"))
	return strings.Join(strings.Fields(string(text)), " ")
}

func (r rig) enqueueOne() {
	r.Helper()
	r.fill(func(p serviceRig) invocation { p.job("payload"); return invocation{} })
}

// finishAfterKill does what other processes do after the death of a worker: it sweeps, and runs the job.
func (r rig) finishAfterKill() {
	r.Helper()
	r.must(0, invoke("sweep", "--grace", "0s").ahead(time.Hour))
	_ = os.Remove(r.path("wait"))
	r.must(0, invoke("work", "-q", "mail", "--worker", "B", "--drain", "--", "sh", "-c",
		printAttempt).ahead(2*time.Hour))
}

// A worker may be killed at any step of a job. Nothing that it started continues, its claim ends once, the
// job succeeds once, and its command runs at most once per claim.
func TestKillWorkerAtEachStep(t *testing.T) {
	for _, step := range ledgertest.Sample(workSteps, 2) {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.enqueueOne()
			if step == "child-runs" {
				r.touch("wait")
			}
			command := invoke("work", "-q", "mail", "--worker", "A", "--once", "--", "sh", "-c", printAttempt)
			if step == "child-runs" { // without the kill it would not end
				copied := r.copied()
				if got := copied.do(command.dyingAt(step)); !got.killed {
					t.Fatalf("%+v", got)
				}
				copied.wantHealed(step)
				return
			}
			r.dieAtEach(step, command, 0, func(r rig, _ exit) { r.wantHealed(step) })
		})
	}
}

func (r rig) wantHealed(step string) {
	r.Helper()
	r.noProcessLeft()
	r.finishAfterKill()
	r.noProcessLeft()
	claims, endings, ends := 0, 0, 0
	var last event.Event
	for _, e := range r.history(db) {
		if e.N == 0 {
			continue
		}
		last = e
		switch {
		case e.Kind() == event.KindClaimed:
			claims++
		case e.Kind() == event.KindSucceeded:
			ends++
			fallthrough
		case e.Kind().EndsClaim():
			endings++
		}
	}
	ran := len(strings.Fields(r.attempts()))
	if last.Kind() != event.KindSucceeded || ends != 1 || endings != claims || claims < 1 || claims > 2 {
		r.Errorf("the job's history: %s", kindsOf(r.history(db)))
	}
	fewer := 0
	if claims == 2 && (step == "child-runs" || step == "task-begins" || step == "group-ends" ||
		step == "answer" || step == "committed") {
		fewer = 1 // it may have been killed between its claim and the start of the command
	}
	if ran > claims || ran < claims-fewer {
		r.Errorf("%d claims, and the command ran for %q", claims, r.attempts())
	}
	got := r.must(0, invoke("show", string(last.Job), "--json").ahead(3*time.Hour))
	if !strings.Contains(got, `"state":"succeeded"`) || !strings.Contains(got, `"result":"payload"`) {
		r.Errorf("the job: %s", got)
	}
}

// beatSteps are the failpoints of a worker's first heartbeat, its third transaction: the first two are its
// start and its claim.
var beatSteps = map[string]bool{ // by failpoint: whether the heartbeat is stored
	"group-begins:2": false, "begun:3": false, "commit:3": false, "committed:3": true, "answer:3": true,
	"group-ends:2": true,
}

// A worker may be killed during a heartbeat.
func TestKillWorkerInHeartbeat(t *testing.T) {
	t.Parallel()
	workers := make(map[string]*running)
	rigs := make(map[string]rig)
	for step := range beatSteps { // concurrently, since they mostly wait
		r := newRig(t)
		r.enqueueOne()
		r.touch("wait")
		command := invoke("work", "-q", "mail", "--worker", "A", "--lease", "9s", "--once", "--", "sh", "-c",
			printAttempt)
		rigs[step], workers[step] = r, r.start(r.cmd(command.dyingAt(step)))
	}
	for step, beats := range beatSteps {
		r := rigs[step]
		workers[step].wantExit(-1)
		r.noProcessLeft()
		want := "enqueued worker_started claimed"
		if beats {
			want += " heartbeat"
		}
		if got := kindsOf(r.history(db)); got != want || r.attempts() != "1" {
			t.Errorf("%s: %s, ran %q; want %s", step, got, r.attempts(), want)
		}
		r.finishAfterKill()
		want += " reclaimed worker_started claimed succeeded worker_stopped"
		got := kindsOf(r.history(db)) // on a slow machine the second attempt has a first heartbeat
		got = strings.Replace(got, " claimed heartbeat succeeded", " claimed succeeded", 1)
		if got != want || r.attempts() != "1 2" {
			t.Errorf("%s: %s, ran %q; want %s", step, got, r.attempts(), want)
		}
	}
}

// A worker does not accumulate open files when others die: after ten deaths it has as many as before.
func TestKillLeaksNoOpenFiles(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("only Linux shows which files a process has open")
	}
	t.Parallel()
	r := newRig(t)
	r.fill(func(serviceRig) invocation { return invocation{} })
	survivors := []*running{
		r.start(r.cmd(invoke("work", "-q", "mail", "-j", "2", "--", "true"))),
		r.start(r.cmd(invoke("sweep", "--every", "100ms"))),
	}
	deaths, before := ledgertest.Size(20, 20, 40), 0
	for n := 1; n <= deaths; n++ {
		for _, step := range []string{"commit", "committed"} { // after "committed" the job is still there
			if got := r.do(invoke("enqueue", "-q", "mail", "x").dyingAt(step)); !got.killed {
				t.Fatalf("%+v", got)
			}
		}
		if n == 10 {
			before = r.openWhenIdle(n, survivors)
		}
	}
	r.eventually(fmt.Sprintf("no more files are open than after ten deaths, when it was %d", before),
		func() bool { return r.openWhenIdle(deaths, survivors) <= before+3 }) // those of the last command close
	for _, p := range survivors {
		p.signal(syscall.SIGTERM)
		p.wantExit(0)
	}
	r.noProcessLeft()
	r.history(db)
}

// openWhenIdle returns how many files processes have open once n jobs have succeeded.
func (r rig) openWhenIdle(jobs int, processes []*running) (files int) {
	r.Helper()
	r.eventually(fmt.Sprintf("%d jobs are done", jobs),
		func() bool { return r.count(event.KindSucceeded) == jobs })
	for _, p := range processes {
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Process.Pid))
		if err != nil {
			r.Error(err)
		}
		files += len(list)
	}
	return files
}

// If a process is killed in the write queue, or while it holds the write lock, the next one continues.
func TestKilledInWriteQueue(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"gate", "turn"} {
		r := newRig(t)
		r.enqueueOne()
		holder := r.start(r.cmd(invoke("enqueue", "-q", "mail", "holder").dyingAt("commit=stop")))
		r.wantStopped(holder)
		if got := r.do(invoke("enqueue", "-q", "mail", "in line").dyingAt(step)); !got.killed {
			t.Errorf("%s: it did not line up: %+v", step, got)
		}
		waiting := r.start(r.cmd(invoke("enqueue", "-q", "mail", "next").dyingAt("gate=stop")))
		r.wantStopped(waiting) // it is in the queue
		waiting.signal(syscall.SIGCONT)
		if step == "gate" {
			holder.signal(syscall.SIGKILL)
			holder.wantExit(-1)
		} else {
			holder.signal(syscall.SIGCONT)
			holder.wantExit(0)
		}
		waiting.wantExit(0)
		want := "enqueued enqueued enqueued"
		if step == "gate" {
			want = "enqueued enqueued"
		}
		if got := kindsOf(r.history(db)); got != want {
			t.Errorf("%s: %s, want %s", step, got, want)
		}
	}
}

// wantStopped waits until a process has stopped itself.
func (r rig) wantStopped(p *running) {
	r.Helper()
	r.eventually("a process stops", func() bool {
		select {
		case <-p.exited:
			r.Fatalf("it has ended instead: %v, %s", p.ProcessState, p.said)
		default:
		}
		return stopped(p.Process.Pid)
	})
}

func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		return bytes.Contains(stat[bytes.LastIndexByte(stat, ')'):], []byte(") T "))
	}
	out, _ := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return bytes.HasPrefix(bytes.TrimSpace(out), []byte("T"))
}
