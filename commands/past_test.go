package commands_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/query"
)

// Each call about the past takes the id of a job, and moments and windows as people name them.
func TestPastInOneCall(t *testing.T) {
	ctx := t.Context()
	service := &commands.Service{Store: ledgertest.Open(t)}
	enqueued, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail", Payload: []byte("hello")}) // 1
	if err != nil {
		t.Fatal(err)
	}
	id := enqueued[0].Job.ID
	claim := func(name string) projection.Job {
		t.Helper()
		jobs, err := service.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"},
			Worker: event.Worker{Name: name, Boot: name}})
		if err != nil || len(jobs) != 1 {
			t.Fatal(jobs, err)
		}
		return jobs[0]
	}
	check := func(what string, ok bool, got any, err error) {
		t.Helper()
		if !ok || err != nil {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	first := claim("w1") // 2
	now := time.Duration(0)
	_, err = service.Fail(ctx, first, commands.Fail{Code: "smtp", RetryIn: &now}) // 3
	check("fail", true, nil, err)
	_, err = service.Pause(ctx, "ann", "mail", "deploy") // 4
	check("pause", true, nil, err)
	_, err = service.Resume(ctx, "ann", "mail", "") // 5
	check("resume", true, nil, err)
	_, err = service.Complete(ctx, claim("w2"), []byte("sent")) // 6, 7
	check("complete", true, nil, err)

	j, err := service.GetAsOf(ctx, id, query.AtPos(2))
	check("GetAsOf", j.State == event.ClaimedState && j.Worker.Name == "w1" && string(j.Payload) == "hello" &&
		j.Result == nil, j, err)
	j, err = service.GetAsOf(ctx, id, nil)
	check("GetAsOf now", j.State == event.SucceededState && string(j.Result) == "sent", j, err)
	if j, err = service.GetAsOf(ctx, id, query.AtPos(0)); !errors.Is(err, commands.ErrNoJob) {
		t.Errorf("before it was enqueued: %+v, %v", j, err)
	}
	if _, err = service.GetAsOf(ctx, "01KDXYZAF80000000000000000", nil); !errors.Is(err, commands.ErrNoJob) {
		t.Errorf("of another id: %v", err)
	}
	if _, err = service.GetAsOf(ctx, id, query.AtPos(99)); !isInputError(err) {
		t.Errorf("beyond the end: %v", err)
	}
	a, err := service.OwnerAt(ctx, id, query.AtPos(2))
	check("OwnerAt", a.Worker.Name == "w1" && a.Outcome == event.KindFailed, a, err)
	a, err = service.OwnerAt(ctx, id, query.AtPos(4))
	check("OwnerAt of none", a.Pos == 0, a, err)
	why, err := service.Why(ctx, id)
	check("Why", why.Job.ID == id && why.Cause.Kind() == event.KindSucceeded, why, err)
	all, err := service.Attempts(ctx, query.Window{}, query.Attempts{Job: j.N})
	check("Attempts", len(all) == 2 && all[0].Code == "smtp" && all[1].Worker.Name == "w2", all, err)
	all, err = service.Attempts(ctx, query.Window{To: query.AtPos(3)}, query.Attempts{})
	check("Attempts of a window", len(all) == 1, all, err)
	all, err = service.Attempts(ctx, query.Window{}, query.Attempts{Span: query.Span{Worker: "w2"}})
	check("Attempts of a worker", len(all) == 1 && all[0].Attempt == 2, all, err)
	if _, err = service.Attempts(ctx, query.Window{From: query.AtPos(9), To: query.AtPos(3)},
		query.Attempts{}); !isInputError(err) {
		t.Errorf("a window that ends before it begins: %v", err)
	}
	d, err := service.Diff(ctx, query.AtPos(1), nil, 5)
	check("Diff", len(d.Cells) == 1 && d.Cells[0].From == event.Queued &&
		d.Cells[0].To == event.SucceededState && slices.Equal(d.Cells[0].Jobs, []event.JobID{id}), d, err)
	jobs, err := service.ListAsOf(ctx, projection.Filter{Queues: []string{"mail"}}, query.AtPos(3))
	check("ListAsOf", len(jobs) == 1 && jobs[0].State == event.Queued && jobs[0].Now == event.SucceededState,
		jobs, err)
	queues, err := service.QueuesAsOf(ctx, query.AtPos(4))
	check("QueuesAsOf", len(queues) == 1 && queues[0].Name == "mail" && queues[0].Paused, queues, err)
	queues, err = service.QueuesAsOf(ctx, query.AtPos(5))
	check("QueuesAsOf, resumed", len(queues) == 1 && !queues[0].Paused, queues, err)
	waits, err := service.Waits(ctx, query.Window{}, query.Waits{})
	check("Waits", len(waits) == 1 && waits[0].Queue == "mail" && waits[0].Claims == 2, waits, err)
	failures, err := service.Failures(ctx, query.Window{}, query.Failures{})
	check("Failures", len(failures.List) == 1 && failures.List[0].Code == "smtp", failures, err)
	history, err := service.History(ctx, id)
	check("History", len(history) == 5, history, err)
	var kinds []string
	for e, err := range service.Events(ctx, query.Events{From: query.AtPos(3), To: query.AtPos(5)}) {
		check("Events", true, e, err)
		kinds = append(kinds, e.Kind().String())
	}
	if !slices.Equal(kinds, []string{"failed", "queue_paused", "queue_resumed"}) {
		t.Errorf("events: %q", kinds)
	}
	commandstest.Verify(t, service.Store)
}

func isInputError(err error) bool {
	_, ok := errors.AsType[*query.InputError](err)
	return ok
}

// enqueueMany enqueues n jobs, one a transaction.
func enqueueMany(ctx context.Context, service *commands.Service, n int) error {
	for i := range n {
		if _, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: fmt.Sprint("q", i%2)}); err != nil {
			return err
		}
	}
	return nil
}

// While the caller works on an event, and after it has stopped, no snapshot is open: the -wal file can be
// emptied.
func TestEventsLeaveNothingOpen(t *testing.T) {
	ledgertest.OfSQLite(t)
	ctx := t.Context()
	service := &commands.Service{Store: ledgertest.Open(t)}
	if err := enqueueMany(ctx, service, 20); err != nil {
		t.Fatal(err)
	}
	nothingOpen := func(when string) {
		t.Helper()
		if err := enqueueMany(ctx, service, 1); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if whole, err := service.Store.Checkpoint(ctx); err != nil || !whole {
			t.Errorf("%s: a snapshot is open: %v, %v", when, whole, err)
		}
	}
	seen := 0
	for _, err := range service.Events(ctx, query.Events{}) {
		if err != nil {
			t.Fatal(err)
		}
		nothingOpen("within the loop")
		if seen++; seen == 3 {
			break
		}
	}
	nothingOpen("after the loop")
	for range service.Subscribe(ctx, query.Events{}, 5) {
		nothingOpen("within a subscription")
		break
	}
	nothingOpen("after a subscription")
	commandstest.Verify(t, service.Store)
}

// A subscription has every event once, also one that ends and goes on from where it was.
func TestSubscribeMissesNone(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const n = 60
	written := make(chan error, 1)
	go func() { written <- enqueueMany(ctx, service, n) }()
	pos := int64(0)
	for pos < n {
		until := pos + 25
		for e, err := range service.Subscribe(ctx, query.Events{}, pos) {
			if err != nil || e.Pos != pos+1 {
				t.Fatalf("event %d after %d, %v", e.Pos, pos, err)
			}
			if pos = e.Pos; pos == until || pos == n {
				break
			}
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	var own []int64
	for e, err := range service.Subscribe(ctx, query.Events{Filter: ledger.Filter{Queue: "q1"}, Last: 2}, 0) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		if own = append(own, e.Pos); len(own) == 2 {
			if err := enqueueMany(ctx, service, 6); err != nil { // three of them of q1
				t.Error(err)
			}
		}
		if len(own) == 5 {
			stop()
		}
	}
	if !slices.Equal(own, []int64{n - 2, n, n + 2, n + 4, n + 6}) {
		t.Errorf("of one queue: %d", own)
	}
	for e, err := range service.Subscribe(t.Context(), query.Events{}, 1000) {
		if !isInputError(err) {
			t.Errorf("beyond the end: %+v, %v", e, err)
		}
	}
	commandstest.Verify(t, service.Store)
}

// Without a Store each call says so.
func TestPastWithoutStore(t *testing.T) {
	ctx, s := t.Context(), &commands.Service{}
	_, get := s.GetAsOf(ctx, "x", nil)
	_, owner := s.OwnerAt(ctx, "x", nil)
	_, why := s.Why(ctx, "x")
	_, attempts := s.Attempts(ctx, query.Window{}, query.Attempts{})
	_, waits := s.Waits(ctx, query.Window{}, query.Waits{})
	_, failures := s.Failures(ctx, query.Window{}, query.Failures{})
	_, diff := s.Diff(ctx, nil, nil, 0)
	_, list := s.ListAsOf(ctx, projection.Filter{}, nil)
	_, queues := s.QueuesAsOf(ctx, nil)
	all := []error{get, owner, why, attempts, waits, failures, diff, list, queues}
	for _, err := range s.Events(ctx, query.Events{}) {
		all = append(all, err)
	}
	for _, err := range s.Subscribe(ctx, query.Events{}, 0) {
		all = append(all, err)
	}
	if len(all) != 11 {
		t.Errorf("%d errors", len(all))
	}
	for i, err := range all {
		if !errors.Is(err, commands.ErrNoStore) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
