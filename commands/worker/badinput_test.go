package worker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// A worker whose claims can only be refused ends at once, before it records that it started.
func TestWorkerRefusesInvalidClaims(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	idle := worker.HandlerFunc(func(context.Context, projection.Job) ([]byte, error) { return nil, nil })
	fine := event.Worker{Name: "w", Boot: "b"}
	for name, w := range map[string]*worker.Worker{
		"no queue":      {Process: fine},
		"a queue":       {Process: fine, Queues: []string{"mail", "Mail"}},
		"an empty one":  {Process: fine, Queues: []string{""}},
		"a capability":  {Process: fine, Queues: []string{"mail"}, Capabilities: []string{"a b"}},
		"a lease":       {Process: fine, Queues: []string{"mail"}, Lease: time.Millisecond},
		"a max runtime": {Process: fine, Queues: []string{"mail"}, MaxRuntime: -1},
		"a name":        {Process: event.Worker{Name: "w\xff", Boot: "b"}, Queues: []string{"mail"}},
		"a version":     {Process: event.Worker{Name: "w", Boot: "b", Version: "v 1"}, Queues: []string{"mail"}},
	} {
		w.Service, w.Handler, w.Drain = service, idle, true
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if _, err := w.Run(ctx); !errors.Is(err, commands.ErrInvalid) {
			t.Errorf("%s: got %v, want %v", name, err, commands.ErrInvalid)
		}
		cancel()
	}
	for line, err := range service.Store.Lines(t.Context(), ledger.Filter{}, false) {
		t.Fatalf("written: %s, %v", line.AppendJSON(nil), err)
	}
}

// A result or error that cannot be recorded fails the job with a message. Otherwise the job would wait for
// the end of its lease and run again.
func TestHandlerInvalidEndFailsTheJob(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	for _, test := range []struct {
		result []byte
		err    error
		code   string
		detail string
	}{
		{make([]byte, commands.MaxPayload+1), nil, "invalid_end",
			"result of 1048577 bytes is not allowed; allowed: up to 1,048,576 bytes"},
		{nil, &worker.Error{Code: "http 429", Err: errors.New("slow down")}, "invalid_end",
			"code \"http 429\" is not allowed; allowed: 1 to 64 printable ASCII characters without spaces\n" +
				"the handler said \"http 429\": http 429: slow down"},
		{nil, errors.New("a\xff\x00b" + strings.Repeat("é", commands.MaxErrorDetail)), "error",
			strings.Repeat("é", commands.MaxErrorDetail/2)},
	} {
		j := one(t, service, commands.Enqueue{MaxAttempts: 1})
		w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
			return test.result, test.err
		})
		w.Drain, w.MaxJobs = false, 1
		stats, err := w.Run(t.Context())
		if j = get(t, service, j.ID); err != nil || stats.Failed != 1 || j.State != event.FailedState ||
			j.ErrorCode != test.code || j.ErrorDetail != test.detail {
			t.Errorf("%.40v: got %+v, %v; the job is %s with %q, %.100q",
				test.err, stats, err, j.State, j.ErrorCode, j.ErrorDetail)
		}
		if got := kinds(t, service, j.N); !slices.Equal(got, []string{"enqueued", "claimed", "failed"}) {
			t.Errorf("events: %v", got)
		}
	}
	commandstest.Verify(t, service.Store)
}

// No end is lost by its wording: a wait that is over is none, and what is too long is cut.
func TestHandlerEndsAreMadeToFit(t *testing.T) {
	const year = 366 * 24 * time.Hour
	long, slow := strings.Repeat("é", 3000), errors.New("slow down")
	for name, test := range map[string]struct {
		err    error
		kind   string
		state  event.State
		reason string
		wait   time.Duration // at most
	}{
		"RetryIn in the past": {&worker.Error{Code: "http_429", RetryIn: -time.Second, Err: slow},
			"failed", event.Queued, "http_429", 0},
		"RetryIn too long": {&worker.Error{Code: "http_429", RetryIn: 1 << 62},
			"failed", event.Queued, "http_429", year},
		"Snooze in the past": {worker.Snooze(-time.Hour), "released", event.Queued, "snoozed", time.Minute},
		"Snooze too long":    {worker.Snooze(1 << 62), "released", event.Queued, "snoozed", year},
		"a long reason":      {worker.Cancel(long), "cancelled", event.CancelledState, long[:1020] + "…", 0},
		"a reason with NUL":  {worker.Cancel("a\x00b\xff"), "cancelled", event.CancelledState, "a\uFFFDb\uFFFD", 0},
	} {
		service := &commands.Service{Store: ledgertest.Open(t)}
		j := one(t, service, commands.Enqueue{MaxAttempts: 2})
		w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) { return nil, test.err })
		w.Drain, w.MaxJobs = false, 1
		if _, err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		events, err := service.History(t.Context(), j.ID)
		if err != nil || len(events) < 3 {
			t.Fatalf("%s: %v, %v", name, kinds(t, service, j.N), err)
		}
		said := ""
		switch b := events[2].Body.(type) {
		case *event.Failed:
			said = b.ErrorCode
		case *event.Released:
			said = b.Reason
		case *event.Cancelled:
			said = b.Reason
		}
		if got := events[2].Kind().String(); got != test.kind || said != test.reason {
			t.Errorf("%s: got %s with %q, want %s with %q", name, got, said, test.kind, test.reason)
		}
		j = get(t, service, j.ID)
		if j.State != test.state || j.RunAt.Sub(events[2].At) > test.wait {
			t.Errorf("%s: the job is %s, to run after %s", name, j.State, j.RunAt.Sub(events[2].At))
		}
		commandstest.Verify(t, service.Store)
	}
}

func TestWorkerRefusesMisuse(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	idle := func(context.Context, projection.Job) ([]byte, error) { return nil, nil }
	for name, change := range map[string]func(*worker.Worker){
		"slots": func(w *worker.Worker) { w.Slots = -1 }, "poll": func(w *worker.Worker) { w.Poll = -1 },
		"max_jobs": func(w *worker.Worker) { w.MaxJobs = -1 },
	} {
		w := newWorker(service, idle)
		change(w)
		_, err := w.Run(t.Context())
		if !errors.Is(err, commands.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	w := newWorker(&commands.Service{}, idle)
	if _, err := w.Run(t.Context()); !errors.Is(err, commands.ErrNoStore) {
		t.Errorf("no store: got %v", err)
	}
	_, _, _, err := newWorker(service, idle).Finish(t.Context(), projection.Job{}, time.Now())
	if !errors.Is(err, commands.ErrInvalid) {
		t.Errorf("Finish of no job: got %v", err)
	}
	var mux worker.Mux
	for name, call := range map[string]func(){
		"HandleFunc": func() { mux.HandleFunc("mail", nil) },
		"Handle":     func() { worker.Handle[string](&mux, "mail", nil) },
		"Use":        func() { mux.Use(nil) },
		"with":       func() { mux.HandleFunc("mail", idle, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s takes nil", name)
				}
			}()
			call()
		}()
	}
}

func TestWorkerRunsOnceAtATime(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	one(t, service, commands.Enqueue{})
	began, goOn := make(chan struct{}), make(chan struct{})
	w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
		close(began)
		<-goOn
		return nil, nil
	})
	done := make(chan error, 1)
	go func() {
		_, err := w.Run(t.Context())
		done <- err
	}()
	<-began
	if _, err := w.Run(t.Context()); !errors.Is(err, worker.ErrStarted) {
		t.Errorf("a second Run: got %v", err)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if stats, err := w.Run(t.Context()); err != nil || stats.Claimed != 0 {
		t.Errorf("after a drain: got %+v, %v", stats, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Run(ended); err != nil {
		t.Errorf("with a context that has ended: got %v", err)
	}
	w.Stop()
	if _, err := w.Run(t.Context()); !errors.Is(err, worker.ErrStopped) {
		t.Errorf("after Stop: got %v", err)
	}
	commandstest.Verify(t, service.Store)
}
