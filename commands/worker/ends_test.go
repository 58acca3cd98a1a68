package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// badError is an error whose text panics.
type badError struct{ text *string }

func (e badError) Error() string { return *e.text }

func TestErrorsSayHowTheAttemptEnds(t *testing.T) {
	t.Parallel()
	cause := errors.New("550 no such user")
	hour := func(j projection.Job) bool { return time.Until(j.RunAt) > 59*time.Minute }
	for name, test := range map[string]struct {
		err          error
		state        event.State
		code, detail string
		check        func(projection.Job) bool
	}{
		"code and cause": {worker.Error{Code: "smtp_5xx", Err: cause}, event.Queued, "smtp_5xx",
			"smtp_5xx: 550 no such user", nil},
		"wrapped": {fmt.Errorf("send: %w", &worker.Error{Code: "smtp_5xx", Detail: "only this"}), event.Queued,
			"smtp_5xx", "only this", nil},
		"no retry": {&worker.Error{Code: "x", NoRetry: true}, event.FailedState, "x", "x", nil},
		"permanent with a code": {worker.Permanent(worker.Error{Code: "x", Err: cause}), event.FailedState, "x",
			"x: 550 no such user", nil},
		"retry in an hour": {&worker.Error{RetryIn: time.Hour, Err: cause}, event.Queued, "error",
			"550 no such user", hour},
		"outer code wins": {&worker.Error{Code: "a", Err: worker.Error{Code: "b", RetryIn: time.Hour}},
			event.Queued, "a", "a: b", hour},
		"bad code": {worker.Error{Code: "has spaces"}, event.Queued, "invalid_end", "", nil},
		"text panics": {badError{}, event.Queued, "panic", "", func(j projection.Job) bool {
			return strings.Contains(j.ErrorDetail, "ends_test.go")
		}},
		"cancel": {fmt.Errorf("look up: %w", worker.Cancel("the order is gone")), event.CancelledState, "", "",
			nil},
		"snooze in an error": {worker.Permanent(worker.Snooze(time.Hour)), event.Queued, "", "",
			func(j projection.Job) bool { return j.Failures == 0 && j.Snoozes == 1 && hour(j) }},
	} {
		t.Run(name, func(t *testing.T) {
			service := &commands.Service{Store: ledgertest.Open(t)}
			j := one(t, service, commands.Enqueue{Payload: []byte("x")})
			w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) { return nil, test.err })
			w.MaxJobs = 1
			var ended []worker.Ending
			w.Hooks.Ended = func(_ projection.Job, how worker.Ending, _ time.Duration) { ended = append(ended, how) }
			stats, err := w.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			j = get(t, service, j.ID)
			if j.State != test.state || j.ErrorCode != test.code || test.check != nil && !test.check(j) ||
				test.detail != "" && j.ErrorDetail != test.detail {
				t.Errorf("got %+v", j)
			}
			if test.state == event.CancelledState && (stats.Cancelled != 1 || ended[0] != worker.Cancelled) {
				t.Errorf("counted %+v, hook got %s", stats, ended)
			}
			commandstest.Verify(t, service.Store)
		})
	}
}

// A job that its own handler cancelled says who, why, and that the work has ended: a retry does not wait.
func TestCancelByHandlerRecordsTheEndOfTheWork(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	j := one(t, service, commands.Enqueue{Payload: []byte("x")})
	w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
		return nil, worker.Cancel("the order is gone")
	})
	w.MaxJobs, w.Lease = 1, time.Hour
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(kinds(t, service, j.N), " "); got != "enqueued claimed cancelled stopped" {
		t.Errorf("events: %s", got)
	}
	err := service.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{Job: j.N}) {
			if c, ok := e.Body.(*event.Cancelled); ok && (c.Reason != "the order is gone" || e.Actor != "worker:w1") {
				t.Errorf("%+v by %s", c, e.Actor)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	retried, err := service.Apply(t.Context(), "cli:ann", j.ID, commands.Retry{})
	if err != nil || retried.RunAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("retried, to run at %s, %v", retried.RunAt, err)
	}
	commandstest.Verify(t, service.Store)
}

// The token decides: a handler whose claim was lost cannot cancel the job of another claim.
func TestCancelWithTokenChangesOwnClaimOnly(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	j := one(t, service, commands.Enqueue{Payload: []byte("x")})
	claim := func() projection.Job {
		t.Helper()
		jobs, err := service.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
			Worker: event.Worker{Name: "w1", Boot: "b1"}})
		if err != nil || len(jobs) != 1 {
			t.Fatal(jobs, err)
		}
		return jobs[0]
	}
	first := claim()
	if _, err := service.Apply(t.Context(), "cli:ann", j.ID, commands.Release{Token: first.Token}); err != nil {
		t.Fatal(err)
	}
	second := claim()
	_, err := service.Apply(t.Context(), "worker:w1", j.ID, commands.Cancel{Token: first.Token})
	if !errors.Is(err, commands.ErrLeaseLost) || get(t, service, j.ID).Token != second.Token {
		t.Errorf("with the token of an earlier claim: %v", err)
	}
	for range 2 { // the second is the repeat of a command whose answer was lost
		after, err := service.Apply(t.Context(), "worker:w1", j.ID, commands.Cancel{Token: second.Token})
		if err != nil || after.State != event.CancelledState {
			t.Errorf("with its own: %s, %v", after.State, err)
		}
	}
	if got := strings.Join(kinds(t, service, j.N), " "); got !=
		"enqueued claimed released claimed cancelled stopped" {
		t.Errorf("events: %s", got)
	}
	commandstest.Verify(t, service.Store)
}

func TestRetryBySetsTheWait(t *testing.T) {
	never := worker.RetryBy(func(projection.Job, error) time.Duration { return -1 })
	grows := worker.RetryBy(func(j projection.Job, _ error) time.Duration {
		return time.Duration(j.Failures+1) * time.Hour
	})
	own := worker.RetryBy(func(projection.Job, error) time.Duration { return 0 })
	for name, test := range map[string]struct {
		with worker.Middleware
		work worker.HandlerFunc
		kind string
		wait time.Duration
		code string
	}{
		"never": {never, func(context.Context, projection.Job) ([]byte, error) {
			return nil, errors.New("no")
		}, "failed", -1, "error"},
		"grows": {grows, func(context.Context, projection.Job) ([]byte, error) {
			return nil, errors.New("no")
		}, "queued", time.Hour, "error"},
		"a panic": {grows, func(context.Context, projection.Job) ([]byte, error) { panic("boom") },
			"queued", time.Hour, "panic"},
		"the job's own": {own, func(context.Context, projection.Job) ([]byte, error) {
			return nil, errors.New("no")
		}, "queued", time.Second, "error"},
		"not of a snooze": {never, func(context.Context, projection.Job) ([]byte, error) {
			return nil, worker.Snooze(2 * time.Hour)
		}, "queued", 2 * time.Hour, ""},
		"not of an error that says when": {never, func(context.Context, projection.Job) ([]byte, error) {
			return nil, worker.Error{RetryIn: 3 * time.Hour}
		}, "queued", 3 * time.Hour, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			service := &commands.Service{Store: ledgertest.Open(t)}
			j := one(t, service, commands.Enqueue{Payload: []byte("x")})
			m := new(worker.Mux)
			m.HandleFunc("mail", test.work, test.with)
			w := newWorker(service, nil)
			w.Handler, w.Queues, w.MaxJobs = m, nil, 1
			if _, err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			j = get(t, service, j.ID)
			wait := time.Until(j.RunAt)
			if j.State.String() != test.kind || j.ErrorCode != test.code ||
				test.wait > 0 && (wait > test.wait*3/2 || wait < test.wait/3-time.Second) {
				t.Errorf("%s, code %s, waits %s", j.State, j.ErrorCode, wait)
			}
			commandstest.Verify(t, service.Store)
		})
	}
}

// A handler that reports progress a thousand times a second writes one heartbeat a second, with the last
// report, and its context says whose job it is.
func TestProgressIsSentOnceASecond(t *testing.T) {
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		service := &commands.Service{Store: ledgertest.Open(t)}
		j := one(t, service, commands.Enqueue{})
		w := newWorker(service, func(ctx context.Context, job projection.Job) ([]byte, error) {
			if got, ok := worker.JobOf(ctx); !ok || got.ID != job.ID || got.Token != job.Token {
				t.Errorf("the context has job %s, %v", got.ID, ok)
			}
			if err := worker.Progress(ctx, 2, ""); !errors.Is(err, commands.ErrInvalid) {
				t.Errorf("of 2: %v", err)
			}
			if err := worker.Progress(ctx, 0, "page 0"); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if now := get(t, service, job.ID); now.Note != "page 0" { // at once
				t.Errorf("the ledger has note %q", now.Note)
			}
			for i := range 5000 {
				time.Sleep(time.Millisecond)
				if err := worker.Progress(ctx, float64(i)/5000, fmt.Sprint("page ", i)); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			if now := get(t, service, job.ID); now.Note != "page 4999" || *now.Progress != 4999./5000 {
				t.Errorf("the ledger has note %q", now.Note)
			}
			return nil, nil
		})
		w.MaxJobs, w.Poll = 1, time.Minute
		if stats, err := w.Run(t.Context()); err != nil || stats.Succeeded != 1 {
			t.Fatalf("run: %+v, %v", stats, err)
		}
		if n := strings.Count(strings.Join(kinds(t, service, j.N), " "), "heartbeat"); n < 6 || n > 8 {
			t.Errorf("%d heartbeats in six seconds", n)
		}
		if err := worker.Progress(t.Context(), 0.5, ""); !errors.Is(err, worker.ErrNoJob) {
			t.Errorf("outside of a handler: %v", err)
		}
		commandstest.Verify(t, service.Store)
	})
}

func TestProgressReturnsWhyTheWorkMustStop(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	one(t, service, commands.Enqueue{})
	var cause error
	w := newWorker(service, func(ctx context.Context, job projection.Job) ([]byte, error) {
		if _, err := service.Apply(ctx, "cli:ann", job.ID, commands.Cancel{}); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		cause = worker.Progress(ctx, 0.5, "")
		return nil, cause
	})
	w.MaxJobs = 1
	if stats, err := w.Run(t.Context()); err != nil || stats.Cancelled != 1 {
		t.Errorf("run: %+v, %v", stats, err)
	}
	if !errors.Is(cause, commands.ErrCancelled) {
		t.Errorf("got %v", cause)
	}
	commandstest.Verify(t, service.Store)
}
