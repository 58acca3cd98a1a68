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
		{nil, worker.Snooze(-time.Hour), "invalid_end", "delay -1h0m0s is not allowed; allowed: 0s to 8784h"},
		{nil, worker.Snooze(1 << 62), "invalid_end",
			"delay 1281023h53m38.427387904s is not allowed; allowed: 0s to 8784h"},
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
