package worker_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// one enqueues a job.
func one(t testing.TB, s *commands.Service, e commands.Enqueue) projection.Job {
	t.Helper()
	e.Queue = "mail"
	jobs, err := s.Enqueue(t.Context(), "cli:test", e)
	if err != nil {
		t.Fatal(err)
	}
	return jobs[0].Job
}

func get(t testing.TB, s *commands.Service, id event.JobID) (j projection.Job) {
	t.Helper()
	err := s.Store.Read(context.Background(), func(tx *ledger.Tx) (err error) {
		if j, _, err = projection.Get(context.Background(), tx, id); err == nil {
			err = projection.LoadBodies(context.Background(), tx, &j)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func kinds(t testing.TB, s *commands.Service, n int64) (words []string) {
	t.Helper()
	err := s.Store.Read(context.Background(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(context.Background(), ledger.Filter{Job: n}) {
			if err != nil {
				return err
			}
			words = append(words, e.Kind().String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return words
}

func newWorker(s *commands.Service, f worker.HandlerFunc) *worker.Worker {
	return &worker.Worker{
		Service: s, Process: event.Worker{Name: "w1", Boot: "b1"}, Queues: []string{"mail"}, Drain: true,
		Handler: f,
	}
}

func TestHandlerReturnDecidesHowTheJobEnds(t *testing.T) {
	t.Parallel()
	fail := errors.New("smtp says no")
	for name, test := range map[string]struct {
		work  worker.HandlerFunc
		state event.State
		check func(projection.Job) bool
	}{
		"result": {func(context.Context, projection.Job) ([]byte, error) {
			return []byte("sent"), nil
		}, event.SucceededState,
			func(j projection.Job) bool { return string(j.Result) == "sent" }},
		"no result": {func(context.Context, projection.Job) ([]byte, error) {
			return nil, nil
		}, event.SucceededState,
			func(j projection.Job) bool { return j.Result == nil }},
		"error": {func(context.Context, projection.Job) ([]byte, error) { return nil, fail }, event.Queued,
			func(j projection.Job) bool {
				return j.ErrorCode == "error" && j.ErrorDetail == "smtp says no" && j.Failures == 1
			}},
		"permanent error": {func(context.Context, projection.Job) ([]byte, error) {
			return nil, worker.Permanent(fail)
		}, event.FailedState,
			func(j projection.Job) bool { return j.ErrorDetail == "smtp says no" }},
		"snooze": {func(context.Context, projection.Job) ([]byte, error) {
			return nil, worker.Snooze(time.Hour)
		}, event.Queued,
			func(j projection.Job) bool {
				return j.Failures == 0 && j.Snoozes == 1 && time.Until(j.RunAt) > 59*time.Minute
			}},
		"panic": {func(context.Context, projection.Job) ([]byte, error) { panic("boom") }, event.Queued,
			func(j projection.Job) bool {
				return j.ErrorCode == "panic" && strings.Contains(j.ErrorDetail, "boom") &&
					strings.Contains(j.ErrorDetail, "handler_test.go")
			}},
		"no return": {func(context.Context, projection.Job) ([]byte, error) {
			runtime.Goexit()
			return nil, nil
		}, event.Queued,
			func(j projection.Job) bool {
				return j.ErrorCode == "error" && strings.Contains(j.ErrorDetail, "runtime.Goexit") && j.Failures == 1
			}},
		"max runtime": {func(ctx context.Context, _ projection.Job) ([]byte, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}, event.Queued, func(j projection.Job) bool { return j.ErrorCode == "max_runtime" && j.Failures == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			service := &commands.Service{Store: ledgertest.Open(t)}
			e := commands.Enqueue{Payload: []byte("x")}
			if name == "max runtime" {
				e.MaxRuntime = 20 * time.Millisecond
			}
			j := one(t, service, e)
			w := newWorker(service, test.work)
			w.MaxJobs = 1
			if _, err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if j = get(t, service, j.ID); j.State != test.state || !test.check(j) {
				t.Errorf("got %+v", j)
			}
			commandstest.Verify(t, service.Store)
		})
	}
}

// A job of three hours keeps its lease of one minute with heartbeats, and no other event is recorded.
func TestWorkerHeartbeatsKeepLongJob(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &commands.Service{Store: ledgertest.Open(t)}
		j := one(t, service, commands.Enqueue{})
		w := newWorker(service, func(ctx context.Context, _ projection.Job) ([]byte, error) {
			select {
			case <-time.After(3 * time.Hour):
				return nil, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		})
		w.MaxJobs, w.Poll = 1, time.Minute
		if stats, err := w.Run(t.Context()); err != nil || stats.Succeeded != 1 {
			t.Fatalf("run: %+v, %v", stats, err)
		}
		beats := 0
		for _, kind := range kinds(t, service, j.N) {
			switch kind {
			case "heartbeat":
				beats++
			case "reclaimed", "refused":
				t.Errorf("unexpected %s", kind)
			}
		}
		if beats < 530 || beats > 545 { // every 20 s
			t.Errorf("got %d heartbeats in three hours", beats)
		}
		commandstest.Verify(t, service.Store)
	})
}

func TestHandlerStopsWhenJobIsCancelled(t *testing.T) {
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		service := &commands.Service{Store: ledgertest.Open(t)}
		j := one(t, service, commands.Enqueue{})
		var cause atomic.Value
		w := newWorker(service, func(ctx context.Context, job projection.Job) ([]byte, error) {
			cancel := commands.Cancel{Reason: "wrong customer"}
			if _, err := service.Apply(ctx, "cli:test", job.ID, cancel); err != nil {
				return nil, err
			}
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return []byte("too late"), nil
		})
		w.MaxJobs, w.Poll = 1, time.Minute
		stats, err := w.Run(t.Context())
		if err != nil || stats.Cancelled != 1 {
			t.Fatalf("run: %+v, %v", stats, err)
		}
		if got, _ := cause.Load().(error); !errors.Is(got, commands.ErrCancelled) {
			t.Errorf("cause: got %v, want ErrCancelled", got)
		}
		if got := strings.Join(kinds(t, service, j.N), " "); got != "enqueued claimed cancelled stopped" {
			t.Errorf("events: %s", got)
		}
		commandstest.Verify(t, service.Store)
	})
}

func TestStopWaitsAndEndOfContextReleases(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	j := one(t, service, commands.Enqueue{})
	started := make(chan struct{})
	w := newWorker(service, func(ctx context.Context, _ projection.Job) ([]byte, error) {
		close(started)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	w.Drain = false
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		w.Stop()
		w.Stop()
		cancel()
	}()
	stats, err := w.Run(ctx)
	if err != nil || stats.Released != 1 {
		t.Fatalf("run: %+v, %v", stats, err)
	}
	if j = get(t, service, j.ID); j.State != event.Queued || j.Failures != 0 {
		t.Errorf("after a deploy: %+v", j)
	}
	commandstest.Verify(t, service.Store)
}
