package commands_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"

	"pgregory.net/rapid"
)

// modelJob is what a job should be, by rules written down a second time in the plainest way.
type modelJob struct {
	id, queue, key, payload         string
	priority, max                   int
	runAt                           time.Time
	runtime                         time.Duration
	state                           string
	attempt, failures, snoozes, seq int
	lease, endBy                    time.Time
	claims                          []*modelClaim    // the last one is the latest
	copies                          []projection.Job // as it was seen at some time
	refused                         map[string]bool  // by token and command
}

type modelClaim struct {
	token, worker string
	ended         string           // "": live; succeeded, failed, released, reclaimed, cancelled
	by            commands.Command // what ended it, if its owner did
}

func (j *modelJob) live() *modelClaim {
	if len(j.claims) == 0 || j.claims[len(j.claims)-1].ended != "" {
		return nil
	}
	return j.claims[len(j.claims)-1]
}

func (j *modelJob) end(how string, by commands.Command, state string, runAt time.Time) {
	if c := j.live(); c != nil {
		c.ended, c.by = how, by
	}
	j.state, j.lease, j.endBy = state, time.Time{}, time.Time{}
	if state == "queued" {
		j.runAt = runAt
	}
	j.seq++
}

// fail ends a claim as a failure, to be retried after wait unless there were too many.
func (j *modelJob) fail(how string, by commands.Command, now time.Time, wait time.Duration, giveUp bool) {
	if j.failures++; giveUp || j.failures >= j.max {
		j.end(how, by, "failed", now)
		return
	}
	j.end(how, by, "queued", now.Add(wait))
}

func (j *modelJob) backoff(n int) time.Duration {
	return commands.Backoff(ledger.JobID(j.id), j.attempt, n)
}

type model struct {
	*queue
	rt     *rapid.T
	jobs   []*modelJob
	paused map[string]bool
	tailAt time.Time // of the last event: at never runs back
	events int
}

var modelQueues = []string{"a", "b"}

// stamp is what an event of now carries.
func (m *model) stamp() time.Time {
	if m.now.After(m.tailAt) {
		m.tailAt = m.now
	}
	m.events++
	return m.tailAt
}

func (m *model) job() *modelJob {
	if len(m.jobs) == 0 {
		m.rt.Skip("no job")
	}
	return m.jobs[rapid.IntRange(0, len(m.jobs)-1).Draw(m.rt, "job")]
}

func (m *model) enqueueAny() {
	e := commands.Enqueue{
		Queue: rapid.SampledFrom(modelQueues).Draw(m.rt, "queue"), Key: rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(m.rt, "key"),
		Payload: []byte(rapid.SampledFrom([]string{"", "p"}).Draw(m.rt, "payload")), Priority: rapid.IntRange(-1, 1).Draw(m.rt, "priority"),
		MaxAttempts: rapid.IntRange(1, 3).Draw(m.rt, "max_attempts"), MaxRuntime: time.Duration(rapid.IntRange(0, 1).Draw(m.rt, "runtime")) * 30 * time.Second,
		RunAt: m.now.Add(time.Duration(rapid.IntRange(-1, 2).Draw(m.rt, "run_at")) * 10 * time.Second), ID: id(len(m.jobs) + 1),
	}
	var same *modelJob
	for _, j := range m.jobs {
		if e.Key != "" && j.queue == e.Queue && j.key == e.Key {
			same = j
		}
	}
	got, err := m.Enqueue(m.t.Context(), "cli:test", e)
	switch {
	case same == nil:
		if err != nil || string(got[0].ID) != e.ID {
			m.rt.Fatalf("enqueue: %+v, %v", got, err)
		}
		if e.RunAt.Before(m.now) {
			e.RunAt = m.now
		}
		m.stamp()
		m.jobs = append(m.jobs, &modelJob{id: e.ID, queue: e.Queue, key: e.Key, payload: string(e.Payload), priority: e.Priority, max: e.MaxAttempts,
			runAt: e.RunAt, runtime: e.MaxRuntime, state: "queued", seq: 1, refused: map[string]bool{}, copies: []projection.Job{got[0].Job}})
	case same.payload == string(e.Payload):
		if err != nil || string(got[0].ID) != same.id || !got[0].Existing {
			m.rt.Fatalf("enqueue again: %+v, %v", got, err)
		}
	default:
		if !errors.Is(err, commands.ErrConflict) {
			m.rt.Fatalf("enqueue another payload: %+v, %v", got, err)
		}
	}
}

func (m *model) claimAny() {
	name := rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(m.rt, "worker")
	n := rapid.IntRange(1, 3).Draw(m.rt, "limit")
	queues := rapid.SliceOfNDistinct(rapid.SampledFrom(modelQueues), 1, 2, rapid.ID).Draw(m.rt, "queues")
	lease := time.Duration(rapid.IntRange(1, 60).Draw(m.rt, "lease")) * time.Second
	var want []*modelJob
	for _, j := range m.jobs {
		if j.state == "queued" && !j.runAt.After(m.now) && slices.Contains(queues, j.queue) && !m.paused[j.queue] {
			want = append(want, j)
		}
	}
	slices.SortFunc(want, func(a, b *modelJob) int {
		return cmp.Or(b.priority-a.priority, a.runAt.Compare(b.runAt), cmp.Compare(a.id, b.id))
	})
	want = want[:min(n, len(want))]
	got, err := m.Claim(m.t.Context(), commands.ClaimRequest{Queues: queues, Worker: worker(name), Lease: lease, Limit: n})
	if err != nil || len(got) != len(want) {
		m.rt.Fatalf("claim: %d jobs, %v, want %d", len(got), err, len(want))
	}
	for i, j := range want {
		at := m.stamp()
		j.state, j.lease, j.endBy = "claimed", m.now.Add(lease), time.Time{}
		if j.runtime > 0 {
			j.endBy = at.Add(j.runtime)
			if last := m.now.Add(j.runtime + 15*time.Second); j.lease.After(last) {
				j.lease = last
			}
		}
		j.claims = append(j.claims, &modelClaim{token: got[i].Token, worker: name})
		j.attempt++
		j.seq++
		m.check(j, got[i])
		if string(got[i].Payload) != j.payload {
			m.rt.Fatalf("claimed %s with the payload %q", j.id, got[i].Payload)
		}
	}
}

// owner sends one of an owner's commands with any token that the job ever had, or with another job's.
func (m *model) owner() {
	j := m.job()
	token := "T?"
	var claim *modelClaim
	if n := len(j.claims); n > 0 {
		claim = j.claims[max(0, n-1-rapid.IntRange(0, 3).Draw(m.rt, "stale"))]
		token = claim.token
	}
	if other := m.job(); rapid.IntRange(0, 9).Draw(m.rt, "foreign") == 0 && other != j && len(other.claims) > 0 {
		claim, token = nil, other.claims[len(other.claims)-1].token
	}
	var c commands.Command
	var name string
	switch rapid.IntRange(0, 4).Draw(m.rt, "command") {
	case 0, 1:
		name, c = "heartbeat", commands.Heartbeat{Token: token, Lease: time.Duration(rapid.IntRange(1, 60).Draw(m.rt, "lease")) * time.Second}
	case 2:
		name, c = "succeed", commands.Succeed{Token: token, Result: rapid.SampledFrom([][]byte{nil, {}, []byte("r")}).Draw(m.rt, "result")}
	case 3:
		wait := rapid.SampledFrom([]*time.Duration{nil, ref(time.Duration(0)), ref(5 * time.Second)}).Draw(m.rt, "retry_in")
		name, c = "fail", commands.Fail{Token: token, Code: rapid.SampledFrom([]string{"", "oom"}).Draw(m.rt, "code"), RetryIn: wait}
	case 4:
		name, c = "release", commands.Release{Token: token, Delay: time.Duration(rapid.IntRange(0, 1).Draw(m.rt, "delay")) * 10 * time.Second, Snooze: rapid.Bool().Draw(m.rt, "snooze")}
	}
	got, err := m.send(j, c)
	if claim != nil && claim == j.live() {
		m.stamp()
		switch c := c.(type) {
		case commands.Heartbeat:
			j.state, j.lease = "running", m.now.Add(c.Lease)
			if !j.endBy.IsZero() && j.lease.After(j.endBy.Add(15*time.Second)) {
				j.lease = j.endBy.Add(15 * time.Second)
			}
			j.seq++
		case commands.Succeed:
			j.end("succeeded", c, "succeeded", time.Time{})
		case commands.Fail:
			wait := j.backoff(j.failures + 1)
			if c.RetryIn != nil {
				wait = *c.RetryIn
			}
			j.fail("failed", c, m.now, wait, false)
		case commands.Release:
			wait := c.Delay
			if c.Snooze {
				j.snoozes++
				if wait == 0 {
					wait = j.backoff(j.snoozes)
				}
			}
			j.end("released", c, "queued", m.now.Add(wait))
		}
		if err != nil {
			m.rt.Fatalf("%T with the live token of %s: %v", c, j.id, err)
		}
		m.check(j, got)
		return
	}
	want := commands.ErrLeaseLost
	switch {
	case claim == nil || claim.ended == "reclaimed":
	case claim.ended == "cancelled":
		if claim == j.claims[len(j.claims)-1] {
			want = commands.ErrCancelled
		}
	case sameContent(claim.by, c):
		if err != nil {
			m.rt.Fatalf("%T sent again: %v", c, err)
		}
		m.check(j, got)
		return
	default:
		want = commands.ErrConflict
	}
	var refused *commands.RefusedError
	if !errors.Is(err, want) || !errors.As(err, &refused) {
		m.rt.Fatalf("%T with a token whose claim was %+v: got %v, want %v", c, claim, err, want)
	}
	if key := token + name; !j.refused[key] {
		j.refused[key] = true
		m.stamp()
	}
	m.check(j, got)
}

// sameContent leaves out times: those that a command asks for are not compared.
func sameContent(a, b commands.Command) bool {
	switch a := a.(type) {
	case commands.Succeed:
		b, ok := b.(commands.Succeed)
		return ok && (a.Result == nil) == (b.Result == nil) && string(a.Result) == string(b.Result)
	case commands.Fail:
		b, ok := b.(commands.Fail)
		return ok && cmp.Or(a.Code, "failed") == cmp.Or(b.Code, "failed")
	case commands.Release:
		b, ok := b.(commands.Release)
		return ok && a.Snooze == b.Snooze
	}
	return false
}

// send carries c out by id, or as a step on a copy of the job from any earlier time.
func (m *model) send(j *modelJob, c commands.Command) (projection.Job, error) {
	if rapid.Bool().Draw(m.rt, "by id") {
		return m.Do(m.t.Context(), "cli:test", ledger.JobID(j.id), c)
	}
	held := j.copies[rapid.IntRange(0, len(j.copies)-1).Draw(m.rt, "copy")]
	out, err := m.All(m.t.Context(), "cli:test", []commands.Step{{Job: held, Command: c}})
	if err != nil {
		m.rt.Fatalf("all: %v", err)
	}
	return out[0].Job, out[0].Err
}

func (m *model) operator() {
	j := m.job()
	final := j.state == "succeeded" || j.state == "failed" || j.state == "cancelled"
	var c commands.Command
	allowed, nothing := true, false
	change := func() {}
	switch rapid.IntRange(0, 2).Draw(m.rt, "command") {
	case 0:
		c = commands.Cancel{}
		allowed, nothing = !final || j.state == "cancelled", j.state == "cancelled"
		change = func() { j.end("cancelled", nil, "cancelled", time.Time{}) }
	case 1:
		c = commands.Retry{}
		allowed = final
		change = func() {
			j.end("", nil, "queued", m.tailAt)
			j.failures, j.snoozes = 0, 0
		}
	case 2:
		r := commands.Reschedule{Priority: ref(rapid.IntRange(-1, 1).Draw(m.rt, "priority"))}
		at := j.runAt
		if rapid.Bool().Draw(m.rt, "when") {
			at = m.now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(m.rt, "run_at")) * 10 * time.Second)
			r.RunAt = &at
			if at.Before(m.now) && !at.Equal(j.runAt) {
				at = m.now
			}
		}
		c = r
		allowed, nothing = j.state == "queued", j.state == "queued" && at.Equal(j.runAt) && *r.Priority == j.priority
		change = func() { j.runAt, j.priority, j.seq = at, *r.Priority, j.seq+1 }
	}
	got, err := m.send(j, c)
	switch {
	case !allowed:
		if !errors.Is(err, commands.ErrConflict) {
			m.rt.Fatalf("%T of a job that is %s: %v", c, j.state, err)
		}
		return
	case err != nil:
		m.rt.Fatalf("%T of a job that is %s: %v", c, j.state, err)
	case !nothing:
		m.stamp()
		change()
	}
	m.check(j, got)
}

func (m *model) sweepAll() {
	for _, j := range m.jobs {
		if j.live() != nil && !j.lease.After(m.now) {
			m.stamp()
			j.fail("reclaimed", nil, m.now, j.backoff(j.failures+1), false)
		}
	}
	m.sweep()
}

func (m *model) pauseAny() {
	name, pause := rapid.SampledFrom(modelQueues).Draw(m.rt, "queue"), rapid.Bool().Draw(m.rt, "pause")
	do := m.Resume
	if pause {
		do = m.Pause
	}
	changed, err := do(m.t.Context(), "cli:test", name, "")
	if err != nil || changed != (m.paused[name] != pause) {
		m.rt.Fatalf("pause %s %t: %t, %v", name, pause, changed, err)
	}
	if m.paused[name] = pause; changed {
		m.stamp()
	}
}

// check compares what the ledger says with the model.
func (m *model) check(j *modelJob, got projection.Job) {
	m.rt.Helper()
	token := ""
	if c := j.live(); c != nil {
		token = c.token
	}
	is := fmt.Sprintln(got.ID, got.State, got.Seq, got.Queue, got.Priority, got.Key, got.Attempt, got.Failures, got.Snoozes, got.Token, got.LeaseUntil.UnixMicro(), got.EndBy.UnixMicro())
	want := fmt.Sprintln(j.id, j.state, j.seq, j.queue, j.priority, j.key, j.attempt, j.failures, j.snoozes, token, j.lease.UnixMicro(), j.endBy.UnixMicro())
	if is != want {
		m.rt.Fatalf("got\n%swant\n%s", is, want)
	}
	if j.state == "queued" && !got.RunAt.Equal(j.runAt) {
		m.rt.Fatalf("%s is to run at %s, want %s", j.id, got.RunAt, j.runAt)
	}
	j.copies = append(j.copies, got)
}

// checkAll compares everything, at the end of each sequence.
func (m *model) checkAll() {
	err := m.Store.Read(m.t.Context(), func(tx *ledger.Tx) error {
		for _, j := range m.jobs {
			got, ok, err := projection.Get(m.t.Context(), tx, ledger.JobID(j.id))
			if err != nil || !ok {
				m.rt.Fatalf("get %s: %t, %v", j.id, ok, err)
			}
			m.check(j, got)
		}
		v, err := projection.Verify(m.t.Context(), tx, nil)
		if err != nil || len(v.Findings) > 0 || int(v.Events) != m.events || int(v.Jobs) != len(m.jobs) {
			m.rt.Fatalf("verify: %+v, %v, want %d events of %d jobs", v, err, m.events, len(m.jobs))
		}
		return nil
	})
	if err != nil {
		m.rt.Fatal(err)
	}
}

// TestAnyCommandsInAnyOrder runs random commands of several workers, operators and sweepers against the model.
func TestAnyCommandsInAnyOrder(t *testing.T) {
	folder, round := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		store, err := ledger.Open(t.Context(), "sqlite:"+filepath.Join(folder, fmt.Sprint(round, ".db"))+"?sync=normal")
		if err != nil {
			rt.Fatal(err)
		}
		defer func() {
			if err := store.Close(); err != nil {
				rt.Error(err)
			}
		}()
		m := &model{queue: &queue{t: t, now: ledgertest.Epoch, Service: &commands.Service{Store: store}}, rt: rt, paused: map[string]bool{}}
		store.Now = func() time.Time { return m.now }
		actions := map[string]func(){
			"enqueue": m.enqueueAny, "claim": m.claimAny, "claim more": m.claimAny, "owner": m.owner, "owner again": m.owner,
			"operator": m.operator, "sweep": m.sweepAll, "pause": m.pauseAny,
			"wait": func() { m.now = m.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(m.rt, "seconds")) * time.Second) },
			"clock runs back": func() {
				m.now = m.now.Add(-time.Duration(rapid.IntRange(1, 20).Draw(m.rt, "seconds")) * time.Second)
			},
		}
		repeat := make(map[string]func(*rapid.T))
		for name := range maps.Keys(actions) {
			repeat[name] = func(rt *rapid.T) {
				m.rt = rt
				actions[name]()
			}
		}
		rt.Repeat(repeat)
		m.rt = rt
		m.checkAll()
	})
}
