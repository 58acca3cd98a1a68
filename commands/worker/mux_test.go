package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

type invoice struct {
	Number int      `json:"number"`
	Lines  []string `json:"lines"`
}

func TestMuxTypedHandlers(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	m := new(worker.Mux)
	var got []invoice
	worker.Handle(m, "invoice", func(_ context.Context, job worker.Job[invoice]) (any, error) {
		got = append(got, job.Args)
		return map[string]int{"lines": len(job.Args.Lines), "attempt": job.Attempt}, nil
	})
	worker.Handle(m, "raw", func(_ context.Context, job worker.Job[[]byte]) (any, error) {
		return append(job.Args, '!'), nil
	})
	worker.Handle(m, "none", func(context.Context, worker.Job[*invoice]) (any, error) { return nil, nil })
	worker.Handle(m, "chan", func(context.Context, worker.Job[int]) (any, error) { return make(chan int), nil })
	worker.Handle(m, "text", func(context.Context, worker.Job[int]) (any, error) {
		return json.RawMessage(`[1]`), nil
	})
	for _, test := range []struct{ queue, payload, state, code, result string }{
		{"invoice", `{"number":17,"lines":["a","b"],"more":1}`, "succeeded", "", `{"attempt":1,"lines":2}`},
		{"invoice", "", "succeeded", "", `{"attempt":1,"lines":0}`},
		{"invoice", `{"number":"x"}`, "failed", "bad_payload", ""},
		{"raw", "\x00\xff", "succeeded", "", "\x00\xff!"},
		{"none", "null", "succeeded", "", ""},
		{"chan", "1", "failed", "invalid_end", ""},
		{"text", "1", "succeeded", "", "[1]"},
	} {
		e := commands.Enqueue{Queue: test.queue, Payload: []byte(test.payload), MaxAttempts: 1}
		jobs, err := service.Enqueue(t.Context(), "cli:test", e)
		if err != nil {
			t.Fatal(err)
		}
		w := &worker.Worker{Service: service, Handler: m, Drain: true}
		if _, err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		j := get(t, service, jobs[0].ID)
		if j.State.String() != test.state || j.ErrorCode != test.code || string(j.Result) != test.result {
			t.Errorf("%s %q: %s, code %q, result %q", test.queue, test.payload, j.State, j.ErrorCode, j.Result)
		}
	}
	if want := []invoice{{17, []string{"a", "b"}}, {}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	commandstest.Verify(t, service.Store)
}

func TestMuxMiddlewareOrder(t *testing.T) {
	var calls []string
	note := func(name string) worker.Middleware {
		return func(h worker.Handler) worker.Handler {
			return worker.HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
				calls = append(calls, name)
				defer func() { calls = append(calls, "/"+name) }()
				return h.Work(ctx, job)
			})
		}
	}
	m := new(worker.Mux)
	m.Use(note("a"))
	m.HandleFunc("x", func(context.Context, projection.Job) ([]byte, error) {
		calls = append(calls, "work")
		return []byte("r"), nil
	}, note("c"), note("d"))
	m.Use(note("b"))
	result, err := m.Work(t.Context(), projection.Job{Queue: "x"})
	if got, want := strings.Join(calls, " "), "a b c d work /d /c /b /a"; got != want || err != nil ||
		string(result) != "r" {
		t.Errorf("got %s, %q, %v", got, result, err)
	}
	_, err = m.Work(t.Context(), projection.Job{Queue: "y"})
	if e, ok := errors.AsType[*worker.Error](err); !ok || e.Code != "no_handler" {
		t.Errorf("without a handler: %v", err)
	}
}

func TestMuxRefusesMistakes(t *testing.T) {
	work := worker.HandlerFunc(func(context.Context, projection.Job) ([]byte, error) { return nil, nil })
	m := new(worker.Mux)
	m.Handle("b", work)
	m.Handle("a", work)
	if got := m.Queues(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("queues: %q", got)
	}
	for name, register := range map[string]func(){
		"twice": func() { m.Handle("a", work) },
		"nil":   func() { m.Handle("c", nil) },
		"name":  func() { m.Handle("A B", work) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			register()
		}()
	}
	w := &worker.Worker{Service: &commands.Service{Store: ledgertest.Open(t)},
		Process: event.Worker{Name: "w1", Boot: "b1"}, Handler: m, Queues: []string{"a", "z"}, Drain: true}
	if _, err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"z"`) {
		t.Errorf("a queue without a handler: %v", err)
	}
}
