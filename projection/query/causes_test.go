package query_test

import (
	"maps"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/limit"
	"jobledger/projection/query"
)

// TestCausesOfWaits lets jobs wait for each cause, for a number of seconds that is known, and for several at
// once.
func TestCausesOfWaits(t *testing.T) {
	s := commandstest.New(t)
	ctx, begin := t.Context(), s.Now
	at := func(second int) { s.Now = begin.Add(time.Duration(second) * time.Second) }
	enqueue := func(e commands.Enqueue) event.JobID {
		t.Helper()
		made, err := s.Enqueue(ctx, "cli:test", e)
		if err != nil {
			t.Fatal(err)
		}
		return made[0].ID
	}
	claim := func(queue string) projection.Job {
		t.Helper()
		held, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{queue}, Limit: 1, Lease: time.Hour,
			Worker: event.Worker{Name: "w", Boot: "boot-1"}})
		if err != nil || len(held) != 1 {
			t.Fatal(queue, held, err)
		}
		return held[0]
	}
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	bound := func(queue string, spec limit.Spec) {
		t.Helper()
		_, err := s.Limit(ctx, "cli:test", queue, spec, "")
		do(nil, err)
	}
	bound("slots", limit.Spec{Running: 1})
	bound("rate", limit.Spec{Rate: limit.Rate{N: 1, Per: 10 * time.Second}})
	bound("groups", limit.Spec{PerGroup: 1})
	for _, queue := range []string{"slots", "rate"} {
		enqueue(commands.Enqueue{Queue: queue})
		enqueue(commands.Enqueue{Queue: queue})
	}
	for _, group := range []string{"a", "a", "b"} {
		enqueue(commands.Enqueue{Queue: "groups", Group: group})
	}
	first := enqueue(commands.Enqueue{Queue: "first"})
	enqueue(commands.Enqueue{Queue: "after", After: []commands.Dependency{{Job: first}}})
	enqueue(commands.Enqueue{Queue: "later", RunAt: begin.Add(5 * time.Second)})

	slot, _, grouped, parent := claim("slots"), claim("rate"), claim("groups"), claim("first")
	at(2)
	_, err := s.Pause(ctx, "cli:test", "slots", "")
	do(nil, err)
	at(4)
	do(s.Complete(ctx, parent, nil)) // its job waited 4 s for it
	at(6)
	claim("groups") // of group b: 6 s for a worker, for its group had a slot
	at(7)
	_, err = s.Resume(ctx, "cli:test", "slots", "")
	do(nil, err)
	at(8)
	do(s.Complete(ctx, slot, nil))
	do(s.Complete(ctx, grouped, nil))
	at(9)
	claim("after")  // after 4 s, 5 s for a worker
	claim("later")  // 4 s after its time
	claim("slots")  // 3 s for the slot, of 8 s 5 s paused, and 1 s for a worker
	claim("groups") // 8 s for its group, and 1 s
	at(13)
	claim("rate") // 10 s for the rate, and 3 s
	at(20)

	seconds := func(from, to int) map[string]float64 {
		t.Helper()
		got := make(map[string]float64)
		err := s.Store.Read(ctx, func(tx *ledger.Tx) error {
			w := query.Window{From: query.At(begin.Add(time.Duration(from) * time.Second)),
				To: query.At(begin.Add(time.Duration(to) * time.Second))}
			span, err := w.Resolve(ctx, tx, s.Now)
			if err != nil {
				return err
			}
			rows, err := query.Causes{Span: span}.Read(ctx, tx)
			for _, r := range rows {
				if got[r.Queue+" "+r.Cause.String()] = r.Waited.Seconds(); r.Longest > r.Waited || r.Jobs == 0 {
					t.Errorf("%+v", r)
				}
			}
			return err
		})
		do(nil, err)
		return got
	}
	whole := map[string]float64{"slots limit": 3, "slots paused": 5, "slots worker": 1, "rate limit": 10,
		"rate worker": 3, "groups limit": 8, "groups worker": 7, "after dependency": 4, "after worker": 5,
		"later schedule": 5, "later worker": 4}
	if got := seconds(0, 20); !maps.Equal(got, whole) {
		t.Errorf("got %v, want %v", got, whole)
	}
	// A window has what was waited within it, and two of them have it all. Of the rate, it does not know starts
	// before its beginning.
	sum := seconds(0, 3)
	for key, n := range seconds(3, 20) {
		sum[key] += n
	}
	delete(sum, "rate limit")
	delete(sum, "rate worker")
	delete(whole, "rate limit")
	delete(whole, "rate worker")
	if !maps.Equal(sum, whole) {
		t.Errorf("in two windows %v, want %v", sum, whole)
	}
	s.Verify()
}

// TestCausesTellNoWorkerFromAllBusy lets jobs wait for a worker: before the only one starts, while it has
// another job, after it died, while none has what they ask for, and while a client that announced nothing
// holds one.
func TestCausesTellNoWorkerFromAllBusy(t *testing.T) {
	s := commandstest.New(t)
	ctx, begin := t.Context(), s.Now
	at := func(second int) { s.Now = begin.Add(time.Duration(second) * time.Second) }
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	enqueue := func(queue, capability string) {
		t.Helper()
		e := commands.Enqueue{Queue: queue}
		if capability != "" {
			e.Requires = []string{capability}
		}
		_, err := s.Enqueue(ctx, "cli:test", e)
		do(err)
	}
	process := func(name string) event.Worker { return event.Worker{Name: name, Boot: "boot-" + name} }
	claim := func(name, queue string, lease time.Duration) projection.Job {
		t.Helper()
		held, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{queue}, Limit: 1, Lease: lease,
			Worker: process(name)})
		if err != nil || len(held) != 1 {
			t.Fatal(queue, held, err)
		}
		return held[0]
	}
	start := func(name string) { do(s.WorkerStarted(ctx, process(name), []string{name}, []string{"cpu"})) }
	want := func(rows map[string]time.Duration) {
		t.Helper()
		got := make(map[string]time.Duration)
		do(s.Store.Read(ctx, func(tx *ledger.Tx) error {
			span, err := query.Window{To: query.At(s.Now)}.Resolve(ctx, tx, s.Now)
			if err != nil {
				return err
			}
			found, err := query.Causes{Span: span}.Read(ctx, tx)
			for _, r := range found {
				got[r.Queue] = r.None / time.Second
			}
			return err
		}))
		if !maps.Equal(got, rows) {
			t.Errorf("after %v, no worker for seconds: %v, want %v", s.Now.Sub(begin), got, rows)
		}
	}
	for _, queue := range []string{"busy", "busy", "dies", "dies", "client", "client"} {
		enqueue(queue, "")
	}
	enqueue("busy", "gpu")
	enqueue("busy", "cpu")
	at(2)
	start("busy")
	start("dies")
	at(3)
	first := claim("busy", "busy", time.Hour)
	claim("dies", "dies", 10*time.Second)
	cli := claim("one", "client", time.Hour)
	at(8)
	// Before the starts 2 s of four jobs of busy, then all of the one that asks for a GPU; of the client's
	// queue 3 s of two jobs, as it announced nothing.
	want(map[string]time.Duration{"busy": 2*4 + 6, "dies": 2 * 2, "client": 3 * 2})
	_, err := s.Complete(ctx, first, nil)
	do(err)
	_, err = s.Complete(ctx, cli, nil)
	do(err)
	at(10)
	do(s.WorkerStopped(ctx, process("busy")))
	at(13)
	sweeper := commands.Sweeper{Service: s.Service, Actor: "sweeper:test", Grace: new(time.Duration)}
	_, err = sweeper.Sweep(ctx)
	do(err)
	at(16)
	// busy: 6 s after the stop, of two jobs, besides 8 s and 14 s of the GPU; dies: all since its last word at
	// 3 s, and of its taken job since 13 s; the client: 8 s to 16 s.
	want(map[string]time.Duration{"busy": 8 + 14 + 2*6, "dies": 4 + 13 + 3, "client": 6 + 8})
	s.Verify()
}

// TestClocksThatWereBehind sets the clock of a worker back: its next leases seem shorter, for the events are
// not dated before the one before them.
func TestClocksThatWereBehind(t *testing.T) {
	s := commandstest.New(t)
	ctx, begin := t.Context(), s.Now
	for _, step := range []struct {
		worker string
		after  time.Duration
	}{{"good", 0}, {"bad", 10 * time.Second}, {"bad", 4 * time.Second}, {"good", 20 * time.Second},
		{"bad", 12 * time.Second}} {
		s.Now = begin.Add(20 * time.Second)
		if _, err := s.Enqueue(ctx, "cli:test", commands.Enqueue{Queue: "mail"}); err != nil {
			t.Fatal(err)
		}
		s.Now = begin.Add(20*time.Second + step.after)
		held, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"}, Limit: 1, Lease: time.Minute,
			Worker: event.Worker{Name: step.worker, Boot: "boot-" + step.worker}})
		if err != nil || len(held) != 1 {
			t.Fatal(held, err)
		}
	}
	err := s.Store.Read(ctx, func(tx *ledger.Tx) error {
		span, err := query.Window{}.Resolve(ctx, tx, s.Now.Add(time.Hour))
		if err != nil {
			return err
		}
		found, err := query.Clocks{Span: span}.Read(ctx, tx)
		if err == nil && (len(found) != 1 || found[0].Worker.Name != "bad" || found[0].Events != 2 ||
			found[0].Behind != 8*time.Second) {
			t.Errorf("%+v, want bad, behind by up to 8 s in two events", found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Verify()
}
