package commands_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// The bad night: three hosts, two queues, and six hours of incidents. testdata/history/bad-night.jsonl is the
// output of this generator under the first rules and never changes. Nothing here depends on a real clock, on
// real randomness or on the order of a map.

// night is the simulation. Time advances in ticks of five seconds, and a little with each action of an actor.
type night struct {
	t     *testing.T
	queue *commands.Service
	now   time.Time
	dice  dice
	procs []*proc
	hosts map[string]int // the last pid of each host
	sweep bool           // sweepers are running
	smtp  bool           // the mail provider is up
	jobs  map[string][]event.JobID
}

// dice is xorshift64*, which gives the same numbers with every version of Go.
type dice uint64

func (d *dice) roll(n int) int {
	x := *d
	x ^= x >> 12
	x ^= x << 25
	x ^= x >> 27
	*d = x
	return int((uint64(x) * 0x2545f4914f6cdd1d) >> 33 % uint64(n))
}

func (d *dice) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(d.roll(256))
	}
	return len(b), nil
}

// proc is one worker process.
type proc struct {
	worker event.Worker
	queue  string
	slots  int
	held   []*task
	frozen bool
	gone   bool // the process or its host was killed
}

// task is a job that a process is running.
type task struct {
	job   projection.Job
	beat  time.Time // time of the next heartbeat
	ends  time.Time
	calls int
}

func (n *night) act() {
	n.now = n.now.Add(time.Duration(2000+n.dice.roll(38000)) * time.Microsecond)
}

func (n *night) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatalf("at %s: %v", n.now, err)
	}
}

// refusable accepts a refusal, which a worker gets whose claim has ended.
func (n *night) refusable(err error) {
	n.t.Helper()
	var refused *commands.RefusedError
	if err != nil && !errors.As(err, &refused) {
		n.t.Fatalf("at %s: %v", n.now, err)
	}
}

func (n *night) id() string { return ulid.MustNew(ulid.Timestamp(n.now), &n.dice).String() }

func (n *night) start(host, queue, version string, slots int) {
	n.act()
	n.hosts[host] += 1 + n.dice.roll(40)
	w := event.Worker{Name: host + "-" + queue, Boot: n.id(), Host: host, PID: n.hosts[host], Version: version}
	n.procs = append(n.procs, &proc{worker: w, queue: queue, slots: slots})
	n.must(n.queue.WorkerStarted(n.t.Context(), w, []string{queue}, nil))
}

func (n *night) find(host, queue string) *proc {
	for _, p := range n.procs {
		if !p.gone && p.worker.Host == host && p.queue == queue {
			return p
		}
	}
	n.t.Fatalf("no %s-%s at %s", host, queue, n.now)
	return nil
}

// stop ends a process in an orderly way: it releases its jobs.
func (n *night) stop(p *proc) {
	for _, h := range p.held {
		n.act()
		_, err := n.queue.Apply(n.t.Context(), "worker:"+p.worker.Name, h.job.ID,
			commands.Release{Token: h.job.Token, Reason: "the worker is stopped"})
		n.refusable(err)
	}
	n.act()
	n.must(n.queue.WorkerStopped(n.t.Context(), p.worker))
	p.gone, p.held = true, nil
}

func (n *night) enqueue(e commands.Enqueue, group string) {
	n.act()
	jobs, err := n.queue.Enqueue(n.t.Context(), "cli:shop@web1", e)
	n.must(err)
	n.jobs[group] = append(n.jobs[group], jobs[0].ID)
}

func (n *night) do(actor string, id event.JobID, c commands.Command) {
	n.act()
	_, err := n.queue.Apply(n.t.Context(), actor, id, c)
	n.must(err)
}

// beat advances the simulation by five seconds.
func (n *night) beat(tick time.Time, i int) {
	n.now = tick
	if i%2 == 0 {
		n.produce(i)
	}
	for k := range n.procs { // each process comes first at some time
		if p := n.procs[(k+i)%len(n.procs)]; !p.gone && !p.frozen {
			n.work(p)
		}
	}
	if n.sweep && i%3 == 0 {
		n.sweepNow()
	}
}

func (n *night) sweepNow() {
	n.act()
	none := time.Duration(0)
	s := commands.Sweeper{Service: n.queue, Actor: "sweeper:alpha-mail", Grace: &none}
	_, err := s.Sweep(n.t.Context())
	n.must(err)
}

func (n *night) produce(i int) {
	customer := fmt.Sprint(1 + n.dice.roll(40))
	if n.dice.roll(3) == 0 {
		n.enqueue(commands.Enqueue{Queue: "mail", Key: fmt.Sprintf("invoice-%d", 70000+i),
			Tags:    map[string]string{"customer": customer},
			Payload: fmt.Appendf(nil, `{"to":"customer-%s@example.com","template":"invoice"}`, customer)}, "mail")
	}
	if n.dice.roll(13) == 0 {
		n.enqueue(commands.Enqueue{Queue: "render", Priority: n.dice.roll(3) - 1, MaxRuntime: 20 * time.Minute,
			Tags:    map[string]string{"customer": customer, "kind": "report"},
			Payload: fmt.Appendf(nil, `{"report":%d,"pages":%d}`, i, 1+n.dice.roll(90))}, "render")
	}
}

// reports is a burst of jobs for the queue render.
func (n *night) reports(count int) {
	for i := range count {
		n.enqueue(commands.Enqueue{Queue: "render", Priority: 5, Tags: map[string]string{"customer": "17",
			"kind": "report"},
			Payload: fmt.Appendf(nil, `{"report":"q%d","pages":%d}`, i, 20+n.dice.roll(90))}, "render")
	}
}

// work is what one process does in one tick: heartbeats, ends, and new claims.
func (n *night) work(p *proc) {
	actor := "worker:" + p.worker.Name
	var still []*task
	for _, h := range p.held {
		switch {
		case !h.ends.After(n.now):
			n.act()
			_, err := n.queue.Apply(n.t.Context(), actor, h.job.ID, n.ending(p, h))
			n.refusable(err)
			continue
		case !h.beat.After(n.now):
			n.act()
			h.calls++
			progress := float64(100*n.now.Sub(h.job.ClaimedAt)/h.ends.Sub(h.job.ClaimedAt)) / 100
			beat := commands.Heartbeat{Token: h.job.Token, Lease: time.Minute, Progress: &progress}
			_, err := n.queue.Apply(n.t.Context(), actor, h.job.ID, beat)
			n.refusable(err)
			if err != nil { // lost or cancelled: the worker kills its command
				continue
			}
			h.beat = n.now.Add(20 * time.Second)
		}
		still = append(still, h)
	}
	p.held = still
	if len(p.held) == p.slots {
		return
	}
	r := commands.ClaimRequest{Queues: []string{p.queue}, Worker: p.worker, Version: p.worker.Version,
		Lease: time.Minute, Limit: p.slots - len(p.held)}
	ready, _, err := n.queue.Ready(n.t.Context(), r)
	n.must(err)
	if !ready {
		return
	}
	n.act()
	jobs, err := n.queue.Claim(n.t.Context(), r)
	n.must(err)
	for _, j := range jobs {
		takes := time.Duration(2+n.dice.roll(25)) * time.Second
		if p.queue == "render" {
			takes = time.Duration(40+n.dice.roll(260)) * time.Second
		}
		p.held = append(p.held, &task{job: j, beat: n.now.Add(20 * time.Second), ends: n.now.Add(takes)})
		if j.Key == "poison" {
			p.gone = true // the job uses up the memory, and the kernel kills the process
		}
	}
}

func (n *night) ending(p *proc, h *task) commands.Command {
	zero, one := 0, 1
	token := h.job.Token
	switch chance := n.dice.roll(100); {
	case p.queue == "mail" && !n.smtp:
		return commands.Fail{Token: token, Code: "smtp_421",
			Detail: "421 4.3.2 smtp.example.net: service not available, closing channel\n", ExitCode: &one}
	case p.queue == "mail" && chance < 2:
		return commands.Fail{Token: token, Code: "bad_address", Detail: "550 5.1.1 no such user", ExitCode: &one,
			NoRetry: true}
	case p.queue == "mail" && chance < 5:
		return commands.Release{Token: token, Reason: "rate limit", Snooze: true}
	case p.queue == "render" && chance < 3:
		return commands.Fail{Token: token, Code: "signal", Signal: "SIGSEGV",
			Detail: "fatal: unexpected signal\x1b[0m"}
	case p.queue == "render":
		return commands.Succeed{Token: token, ExitCode: &zero,
			Result: fmt.Appendf([]byte("%PDF-1.7\n\xe2\xe3\xcf\xd3"), "%d", chance)}
	case chance < 50:
		return commands.Succeed{Token: token, ExitCode: &zero, Result: []byte(`250 2.0.0 queued`)}
	}
	return commands.Succeed{Token: token, ExitCode: &zero}
}

const ada = "cli:ada@desk"

// script returns what happens and when, in ticks since 22:00.
func (n *night) script() map[int]func() {
	clock := func(hour, minute int) int { // the tick of a time: on 14 March from 22:00, on 15 March before 12:00
		return ((hour+2)%24*60 + minute) * 12
	}
	return map[int]func(){
		clock(23, 0): func() { // a deploy, host by host
			for _, host := range []string{"alpha", "bravo", "charlie"} {
				for _, queue := range []string{"mail", "render"} {
					n.stop(n.find(host, queue))
					n.start(host, queue, "v2", 2)
				}
			}
		},
		clock(0, 10): func() { n.sweep = false }, // the sweepers are blocked by a lock, unnoticed
		clock(0, 15): func() { n.reports(8) },
		clock(0, 17): func() { // charlie loses power
			for _, p := range n.procs {
				p.gone = p.gone || p.worker.Host == "charlie"
			}
		},
		clock(0, 41): func() { n.sweep = true; n.sweepNow() }, // the late sweep
		clock(0, 50): func() {
			n.start("charlie", "mail", "v2", 2)
			n.start("charlie", "render", "v2", 2)
		},
		clock(1, 4):  func() { n.reports(7) },
		clock(1, 5):  func() { n.find("bravo", "render").frozen = true },
		clock(1, 16): func() { n.find("bravo", "render").frozen = false },
		clock(1, 20): func() { n.smtp = false }, // the retry storm
		clock(1, 50): func() {
			n.act()
			_, err := n.queue.Pause(n.t.Context(), ada, "mail", "smtp.example.net is down, ticket 4711")
			n.must(err)
		},
		clock(2, 10): func() {
			n.smtp = true
			n.act()
			_, err := n.queue.Resume(n.t.Context(), ada, "mail", "smtp.example.net is back")
			n.must(err)
			n.retryFailed("mail", "smtp_421", "gave up while smtp.example.net was down")
		},
		clock(2, 30): func() {
			n.enqueue(commands.Enqueue{Queue: "render", Key: "poison", Priority: 50, MaxAttempts: 2,
				Tags: map[string]string{"customer": "17"}, Payload: []byte(`{"report":"all of 2025"}`)}, "poison")
		},
		clock(2, 40): func() {
			for _, host := range []string{"alpha", "bravo", "charlie"} { // start the hosts again that went down
				if !n.alive(host, "render") {
					n.start(host, "render", "v2", 2)
				}
			}
		},
		clock(2, 55): func() {
			for i := range 40 {
				n.enqueue(commands.Enqueue{Queue: "render", Priority: -10, Tags: map[string]string{"batch": "letters"},
					Key:     fmt.Sprintf("letters-%d", i),
					Payload: fmt.Appendf(nil, `{"letter":%d}`, i)}, "letters")
			}
		},
		clock(3, 2): func() {
			for _, id := range n.jobs["letters"] {
				if s := n.state(id); !s.Final() {
					n.do(ada, id, commands.Cancel{Reason: "wrong template"})
				}
			}
		},
		clock(3, 15): func() { // customer 17 asks for erasure
			n.do(ada, n.jobs["poison"][0], commands.Erase{Reason: "customer 17 asked for it"})
		},
		clock(3, 20): func() {
			priority := 20
			for _, id := range n.jobs["render"][len(n.jobs["render"])-6:] {
				if n.state(id) == event.Queued {
					n.do(ada, id, commands.Reschedule{Priority: &priority, Reason: "the board wants its reports"})
				}
			}
		},
		clock(4, 0): func() {
			for _, p := range n.procs {
				if !p.gone {
					n.stop(p)
				}
			}
		},
	}
}

func (n *night) alive(host, queue string) bool {
	for _, p := range n.procs {
		if !p.gone && p.worker.Host == host && p.queue == queue {
			return true
		}
	}
	return false
}

func (n *night) state(id event.JobID) (state event.State) {
	n.must(n.queue.Store.Read(n.t.Context(), func(tx *ledger.Tx) error {
		j, _, err := projection.Get(n.t.Context(), tx, id)
		state = j.State
		return err
	}))
	return state
}

func (n *night) retryFailed(queue, code, reason string) {
	var failed []projection.Job
	n.must(n.queue.Store.Read(n.t.Context(), func(tx *ledger.Tx) (err error) {
		failed, err = projection.List(n.t.Context(), tx, projection.Filter{Queues: []string{queue},
			States: []event.State{event.FailedState}})
		return err
	}))
	for i := len(failed) - 1; i >= 0; i-- {
		if failed[i].ErrorCode == code {
			n.do(ada, failed[i].ID, commands.Retry{Reason: reason})
		}
	}
}

// badNight runs the simulation on a new ledger.
func badNight(t *testing.T) *ledger.Store {
	store := openFast(t)
	n := &night{t: t, dice: 20260314, hosts: map[string]int{"alpha": 800, "bravo": 2100, "charlie": 1500},
		sweep: true, smtp: true, jobs: make(map[string][]event.JobID)}
	store.Now = func() time.Time { return n.now }
	n.queue = &commands.Service{Store: store, NewID: n.id, NewSalt: func(b []byte) { _, _ = n.dice.Read(b) }}
	begin := time.Date(2026, 3, 14, 22, 0, 0, 0, time.UTC)
	n.now = begin
	for _, host := range []string{"alpha", "bravo", "charlie"} {
		n.start(host, "mail", "v1", 2)
		n.start(host, "render", "v1", 2)
	}
	script := n.script()
	for i := 1; i <= ledgertest.Size(2, 2, 6)*60*12; i++ { // hours
		n.beat(begin.Add(time.Duration(i)*5*time.Second), i)
		if happens := script[i]; happens != nil {
			happens()
		}
	}
	return store
}

// openFast opens a new ledger that need not survive a power cut.
func openFast(t testing.TB) *ledger.Store {
	t.Helper()
	store, err := ledger.Open(t.Context(), ledgertest.Relaxed(ledgertest.Empty(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// exported returns the whole ledger as JSON lines.
func exported(t testing.TB, store *ledger.Store) []byte {
	t.Helper()
	var out []byte
	for line, err := range store.Lines(t.Context(), ledger.Filter{}, true) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(line.AppendJSON(out), '\n')
	}
	return out
}

var badNightFile = filepath.Join("..", "testdata", "history", "bad-night.jsonl")

// The file was written once and never changes: it shows what older rules recorded.
func TestBadNightIsDeterministic(t *testing.T) {
	t.Parallel()
	got, want := exported(t, badNight(t)), exported(t, badNight(t))
	gotLines, wantLines := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(gotLines), len(wantLines)) {
		if !bytes.Equal(gotLines[i], wantLines[i]) {
			t.Fatalf("line %d\n got %s\nthen %s", i+1, gotLines[i], wantLines[i])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%d lines, then %d", len(gotLines), len(wantLines))
	}
}
