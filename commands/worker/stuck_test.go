package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// stuckRun is a worker whose Handler does not return until the test lets it.
type stuckRun struct {
	service *commands.Service
	worker  *worker.Worker
	log     bytes.Buffer
	let     chan struct{}
	job     projection.Job
	begun   time.Time
}

// neverReturns calls fn in a bubble with a worker of a job whose Handler ignores its context, and lets that
// return and verifies the ledger at the end.
func neverReturns(t *testing.T, e commands.Enqueue, fn func(t *testing.T, r *stuckRun)) {
	t.Helper()
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		r := &stuckRun{service: &commands.Service{Store: ledgertest.Open(t)}, let: make(chan struct{})}
		r.job = one(t, r.service, e)
		r.worker = newWorker(r.service, func(_ context.Context, job projection.Job) ([]byte, error) {
			if job.ID == r.job.ID {
				<-r.let
			}
			return []byte("late"), nil
		})
		r.worker.Log = slog.New(slog.NewTextHandler(&r.log, nil))
		r.begun = time.Now()
		fn(t, r)
		close(r.let)
		synctest.Wait()
		commandstest.Verify(t, r.service.Store)
	})
}

// after asserts that so much time has gone by, and at most a second more.
func (r *stuckRun) after(t *testing.T, want time.Duration) {
	t.Helper()
	if took := time.Since(r.begun); took < want || took > want+time.Second {
		t.Errorf("after %s, want %s", took, want)
	}
}

// A worker that stops waits for SoftStop and StopTimeout, and releases the job for when its lease would have
// ended. What the Handler returns later changes nothing.
func TestStopIsBounded(t *testing.T) {
	for _, soft := range []time.Duration{0, 20 * time.Second} {
		neverReturns(t, commands.Enqueue{}, func(t *testing.T, r *stuckRun) {
			r.worker.Drain, r.worker.SoftStop, r.worker.StopTimeout = false, soft, 5*time.Second
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			time.AfterFunc(time.Minute, stop)
			stats, err := r.worker.Run(ctx)
			r.after(t, time.Minute+soft+5*time.Second)
			stuck, ok := errors.AsType[*worker.StuckError](err)
			if !ok || len(stuck.Jobs) != 1 || stuck.Jobs[0].ID != r.job.ID || stats != (worker.Stats{Claimed: 1,
				Released: 1, Stuck: 1}) {
				t.Errorf("run: %+v, %v", stats, err)
			}
			now := get(t, r.service, r.job.ID)
			if now.State != event.Queued || now.RunAt.Before(stuck.Jobs[0].LeaseUntil) || now.Failures != 0 ||
				now.RunAt.After(stuck.Jobs[0].LeaseUntil.Add(time.Second)) {
				t.Errorf("the job is %s at %s, its lease ended at %s", now.State, now.RunAt, stuck.Jobs[0].LeaseUntil)
			}
			before := kinds(t, r.service, r.job.N)
			r.let <- struct{}{}
			synctest.Wait()
			if after := kinds(t, r.service, r.job.N); !slices.Equal(after, before) {
				t.Errorf("events after the Handler returned: %q", after)
			}
		})
	}
}

// What runs is let run for SoftStop.
func TestSoftStopLetsJobsEnd(t *testing.T) {
	for _, soft := range []time.Duration{10 * time.Second, -1} {
		neverReturns(t, commands.Enqueue{}, func(t *testing.T, r *stuckRun) {
			r.worker.Drain, r.worker.SoftStop = false, soft
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			time.AfterFunc(time.Minute, stop)
			time.AfterFunc(69*time.Second, func() { r.let <- struct{}{} })
			if stats, err := r.worker.Run(ctx); err != nil || stats.Succeeded != 1 {
				t.Errorf("run: %+v, %v", stats, err)
			}
			r.after(t, 69*time.Second)
		})
	}
}

// A Handler that ignores its max runtime is reported, its claim is not kept alive for it, and the job is
// taken back. What it returns then is that of a lost claim.
func TestHandlerThatIgnoresItsMaxRuntimeIsReported(t *testing.T) {
	neverReturns(t, commands.Enqueue{MaxRuntime: time.Minute, MaxAttempts: 1}, func(t *testing.T, r *stuckRun) {
		var asked []string
		r.worker.Drain, r.worker.Lease, r.worker.SweepEvery = false, 30*time.Second, 5*time.Second
		r.worker.Hooks.Stuck = func(j projection.Job, cause error, since time.Duration, running int) worker.Slot {
			asked = append(asked, fmt.Sprintf("%s %d", since.Round(time.Second), running))
			if j.ID != r.job.ID || !errors.Is(cause, worker.ErrMaxRuntime) {
				t.Errorf("the hook was asked about %s, %v", j.ID, cause)
			}
			return worker.KeepSlot
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var stats worker.Stats
		var err error
		ended := make(chan struct{})
		go func() {
			stats, err = r.worker.Run(ctx)
			close(ended)
		}()
		time.Sleep(71 * time.Second)
		now := get(t, r.service, r.job.ID)
		if want := "the handler still runs 10s after it was asked to stop: max runtime is over"; now.Note != want {
			t.Errorf("the note is %q", now.Note)
		}
		beats := len(kinds(t, r.service, r.job.N))
		time.Sleep(time.Until(r.begun.Add(time.Minute + 10*time.Second + 30*time.Second + 10*time.Second)))
		got := kinds(t, r.service, r.job.N)
		if now = get(t, r.service, r.job.ID); now.State != event.FailedState || now.ErrorCode != event.MaxRuntime ||
			len(got) != beats+1 {
			t.Errorf("the job is %s, %s: %q", now.State, now.ErrorCode, got)
		}
		time.Sleep(time.Until(r.begun.Add(4*time.Minute + 10*time.Second)))
		synctest.Wait()
		if want := []string{"1s 1", "10s 1", "1m0s 1", "2m0s 1", "3m0s 1"}; !slices.Equal(asked, want) {
			t.Errorf("the hook was asked at %q", asked)
		}
		if n := strings.Count(r.log.String(), "handler still runs"); n != 5 {
			t.Errorf("%d lines:\n%s", n, r.log.String())
		}
		if log := r.log.String(); !strings.Contains(log, "neverReturns") || strings.Count(log, "stack=") != 1 {
			t.Errorf("no stack, or more than one:\n%s", r.log.String())
		}
		r.let <- struct{}{}
		synctest.Wait()
		time.Sleep(time.Second)
		if got = kinds(t, r.service, r.job.N); !slices.Equal(got[len(got)-2:], []string{"refused", "stopped"}) {
			t.Errorf("after the Handler returned: %q", got)
		}
		stop()
		<-ended
		if stats.Stuck != 1 || stats.Lost != 1 || err != nil {
			t.Errorf("run: %+v, %v", stats, err)
		}
	})
}

// The hook decides whether another job has the slot of a Handler that does not stop.
func TestStuckHandlerGivesItsSlot(t *testing.T) {
	for slot, state := range map[worker.Slot]event.State{
		worker.KeepSlot: event.Queued, worker.GiveSlot: event.SucceededState} {
		neverReturns(t, commands.Enqueue{MaxRuntime: time.Minute}, func(t *testing.T, r *stuckRun) {
			second := one(t, r.service, commands.Enqueue{})
			r.worker.Hooks.Stuck = func(projection.Job, error, time.Duration, int) worker.Slot { return slot }
			stats, err := r.worker.Run(t.Context()) // a drain
			r.after(t, time.Minute+10*time.Second)
			if _, stuck := errors.AsType[*worker.StuckError](err); !stuck || stats.Stuck != 1 || stats.Lost != 1 {
				t.Errorf("run: %+v, %v", stats, err)
			}
			if now := get(t, r.service, second.ID); now.State != state {
				t.Errorf("%d: the second job is %s", slot, now.State)
			}
		})
	}
}
