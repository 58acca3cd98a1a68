package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

func TestHooksReportEveryClaim(t *testing.T) {
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		service := &commands.Service{Store: ledgertest.Open(t)}
		for _, payload := range []string{"fine", "bad", "later", "stolen"} {
			one(t, service, commands.Enqueue{Payload: []byte(payload), MaxAttempts: 1})
		}
		time.Sleep(3 * time.Second)
		w := newWorker(service, func(ctx context.Context, job projection.Job) ([]byte, error) {
			time.Sleep(10 * time.Second)
			switch string(job.Payload) {
			case "bad":
				return nil, errors.New("no")
			case "later":
				return nil, worker.Snooze(time.Hour)
			case "stolen":
				if _, err := service.Apply(ctx, "cli:test", job.ID, commands.Cancel{}); err != nil {
					return nil, err
				}
				<-ctx.Done()
			}
			return nil, nil
		})
		w.Slots, w.Poll = 4, time.Second
		var reported []string
		report := func(job projection.Job, what string, d time.Duration) {
			reported = append(reported, fmt.Sprintf("%s %s %s", job.Payload, what, d.Round(time.Second)))
		}
		w.Hooks = worker.Hooks{
			Started: func(job projection.Job, waited time.Duration) { report(job, "started", waited) },
			Ended: func(job projection.Job, how worker.Ending, took time.Duration) {
				report(job, fmt.Sprintf("%s, now %s,", how, job.State), took)
			},
		}
		stats, err := w.Run(t.Context())
		wantStats := worker.Stats{Claimed: 4, Succeeded: 1, Failed: 1, Released: 1, Cancelled: 1}
		if err != nil || stats != wantStats {
			t.Errorf("run: %+v, %v", stats, err)
		}
		slices.Sort(reported)
		want := []string{
			"bad failed, now failed, 10s", "bad started 3s",
			"fine started 3s", "fine succeeded, now succeeded, 10s",
			"later released, now queued, 10s", "later started 3s",
			"stolen cancelled, now cancelled, 10s", "stolen started 3s",
		}
		if !slices.Equal(reported, want) {
			t.Errorf("got  %q\nwant %q", reported, want)
		}
		commandstest.Verify(t, service.Store)
	})
}

// Another process that has the token may end the claim. The next heartbeat stops the handler, and its result
// is lost.
func TestHandlerStopsWhenLeaseIsLost(t *testing.T) {
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		service := &commands.Service{Store: ledgertest.Open(t)}
		j := one(t, service, commands.Enqueue{})
		var cause error
		w := newWorker(service, func(ctx context.Context, job projection.Job) ([]byte, error) {
			release := commands.Release{Token: job.Token, Delay: time.Hour}
			if _, err := service.Apply(ctx, "cli:test", job.ID, release); err != nil {
				return nil, err
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return []byte("too late"), nil
		})
		w.MaxJobs, w.Poll = 1, time.Minute
		if stats, err := w.Run(t.Context()); err != nil || stats.Lost != 1 {
			t.Fatalf("run: %+v, %v", stats, err)
		}
		if !errors.Is(cause, commands.ErrLeaseLost) {
			t.Errorf("cause: got %v, want ErrLeaseLost", cause)
		}
		got := kinds(t, service, j.N)
		if !slices.Equal(got, []string{"enqueued", "claimed", "released"}) {
			t.Errorf("events: %q", got)
		}
		if j = get(t, service, j.ID); j.State != event.Queued || j.Result != nil {
			t.Errorf("the job: %+v", j)
		}
		commandstest.Verify(t, service.Store)
	})
}

func TestHandlerStopsAtMaxRuntime(t *testing.T) {
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		service := &commands.Service{Store: ledgertest.Open(t)}
		one(t, service, commands.Enqueue{MaxRuntime: time.Hour})
		var cause error
		w := newWorker(service, func(ctx context.Context, _ projection.Job) ([]byte, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil, cause
		})
		w.MaxJobs, w.MaxRuntime, w.Poll = 1, 5*time.Minute, time.Minute
		begun := time.Now()
		if stats, err := w.Run(t.Context()); err != nil || stats.Failed != 1 {
			t.Fatalf("run: %+v, %v", stats, err)
		}
		took := time.Since(begun).Round(time.Second)
		if !errors.Is(cause, worker.ErrMaxRuntime) || took != 5*time.Minute {
			t.Errorf("cause %v after %v, want ErrMaxRuntime after 5m", cause, took)
		}
		commandstest.Verify(t, service.Store)
	})
}

// TestLogOfFailureSaysWhenItIsRetried checks the log line: a job that is not retried has no time for it.
func TestLogOfFailureSaysWhenItIsRetried(t *testing.T) {
	for attempts, retried := range map[int]bool{1: false, 2: true} {
		store := ledgertest.Open(t)
		service := &commands.Service{Store: store}
		one(t, service, commands.Enqueue{Payload: []byte("x"), MaxAttempts: attempts})
		w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
			return nil, errors.New("no")
		})
		var log bytes.Buffer
		w.MaxJobs, w.Log = 1, slog.New(slog.NewJSONHandler(&log, nil))
		if _, err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		var line struct {
			Msg     string
			State   string
			RetryAt time.Time `json:"retry_at"`
		}
		if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Msg != "failed" {
			t.Fatalf("got %s, %v", log.Bytes(), err)
		}
		want := event.FailedState
		if retried {
			want = event.Queued
		}
		if line.State != want.String() || line.RetryAt.IsZero() == retried {
			t.Errorf("of %d attempts: got %s", attempts, log.Bytes())
		}
		commandstest.Verify(t, store)
	}
}

// TestLogLinesSayWhoAndWhat: each line about a job has the time, the worker, the queue and the attempt, and
// what belongs to its end, and nothing else.
func TestLogLinesSayWhoAndWhat(t *testing.T) {
	t.Parallel()
	store := ledgertest.Open(t)
	service := &commands.Service{Store: store}
	for _, script := range []string{"exit 7", "exit 75", "kill -9 $$", "exit 0", "exec sleep 3600"} {
		one(t, service, commands.Enqueue{Payload: []byte(script), MaxAttempts: 1})
	}
	var log bytes.Buffer
	w := &worker.Worker{Service: service, Queues: []string{"mail"}, Drain: true, Poll: time.Hour, SweepEvery: -1,
		Process: event.Worker{Name: "w1"}, Log: slog.New(slog.NewJSONHandler(&log, nil)),
		Command: &worker.Command{Path: "sh"},
		Hooks: worker.Hooks{Started: func(j projection.Job, _ time.Duration) {
			if strings.HasPrefix(string(j.Payload), "exec") {
				if _, err := service.Cancel(t.Context(), "ada", j.ID, ""); err != nil {
					t.Error(err)
				}
			}
		}}}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"failed exit 7":   "attempt code exit_code job level msg queue state time worker",
		"failed signal":   "attempt code job level msg queue signal state time worker",
		"released exit":   "attempt exit_code job level msg queue reason time worker",
		"cancelled cause": "attempt cause job level msg queue time worker",
	}
	for line := range bytes.Lines(log.Bytes()) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] == "cancelled" {
			delete(fields, "signal") // whether the command had been started is chance
		}
		if again, _ := fields["attempt"].(float64); again > 1 && fields["msg"] == "released" {
			continue // on a slow machine its pause ends before the other jobs do
		}
		names := strings.Join(slices.Sorted(maps.Keys(fields)), " ")
		found := ""
		for what, has := range want {
			if has == names && strings.HasPrefix(what, fmt.Sprint(fields["msg"])) {
				found = what
			}
		}
		if found == "" || fields["worker"] != "w1" || fields["queue"] != "mail" || fields["attempt"] != 1.0 {
			t.Errorf("the line %s has %s", line, names)
		}
		delete(want, found)
	}
	for what := range want {
		t.Errorf("there is no line for %s in\n%s", what, log.Bytes())
	}
	commandstest.Verify(t, store)
}
