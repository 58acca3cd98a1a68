package worker_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
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

// TestCancelReachesAnotherProcess cancels through a second Store, as another process would. The lease is so
// long that a heartbeat cannot be what stops the work. A retry waits until the work has ended.
func TestCancelReachesAnotherProcess(t *testing.T) {
	address := filepath.Join(t.TempDir(), "jobs.db")
	if ledgertest.OnPostgres(t) {
		address = ledgertest.Postgres(t)
	}
	store := ledgertest.OpenAt(t, address)
	service := &commands.Service{Store: store}
	operator := &commands.Service{Store: ledgertest.OpenAt(t, address)}
	job := one(t, service, commands.Enqueue{Payload: []byte("x")})
	began, reached, goOn := make(chan struct{}, 2), make(chan time.Time, 1), make(chan struct{})
	var ending worker.Ending
	w := newWorker(service, func(ctx context.Context, j projection.Job) ([]byte, error) {
		began <- struct{}{}
		if j.Attempt > 1 {
			return nil, nil
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), commands.ErrCancelled) {
			t.Errorf("the work ended by %v", context.Cause(ctx))
		}
		reached <- time.Now()
		<-goOn
		return nil, nil
	})
	w.Slots, w.Lease, w.MaxJobs = 2, time.Hour, 2
	w.Hooks.Ended = func(j projection.Job, how worker.Ending, _ time.Duration) {
		if ending == "" {
			ending = how
			if j.State.Held() {
				t.Errorf("after the end the job is %s", j.State)
			}
		}
	}
	ended := make(chan worker.Stats)
	go func() {
		stats, err := w.Run(t.Context())
		if err != nil {
			t.Error(err)
		}
		ended <- stats
	}()
	<-began
	asked := time.Now()
	if _, err := operator.Apply(t.Context(), "cli:ann", job.ID, commands.Cancel{}); err != nil {
		t.Fatal(err)
	}
	took := (<-reached).Sub(asked)
	t.Logf("the cancel took %s", took)
	if took > w.Lease/6 {
		t.Errorf("the cancel took %s", took)
	}
	retried, err := operator.Apply(t.Context(), "cli:ann", job.ID, commands.Retry{})
	if err != nil || !retried.RunAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("retried while the work goes on: to run at %s, %v", retried.RunAt, err)
	}
	goOn <- struct{}{}
	wantStats := worker.Stats{Claimed: 2, Succeeded: 1, Cancelled: 1}
	if stats := <-ended; stats != wantStats || ending != worker.Cancelled {
		t.Errorf("got %+v, ended %s, want %+v", stats, ending, wantStats)
	}
	commandstest.Verify(t, store)
	var kinds []string
	err = store.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{Job: job.N}) {
			if err != nil {
				return err
			}
			if k := e.Kind(); k != event.KindRefused && k != event.KindHeartbeat {
				kinds = append(kinds, k.String())
			}
		}
		return nil
	})
	want := []string{"enqueued", "claimed", "cancelled", "retried", "stopped", "rescheduled",
		"claimed", "succeeded"}
	if err != nil || !slices.Equal(kinds, want) {
		t.Errorf("got %v, %v, want %v", kinds, err, want)
	}
}

// TestCancelOfWorkThatEnds cancels a job whose work ends before the worker knows of the cancel: the end is
// refused, and recorded as that of a lost claim, so that a retry no longer waits.
func TestCancelOfWorkThatEnds(t *testing.T) {
	store := ledgertest.Open(t)
	service := &commands.Service{Store: store}
	job := one(t, service, commands.Enqueue{Payload: []byte("x")})
	var ends []string
	w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) { return nil, nil })
	w.Lease = time.Hour
	w.Hooks.Started = func(j projection.Job, _ time.Duration) {
		if _, err := service.Apply(t.Context(), "cli:ann", j.ID, commands.Cancel{}); err != nil {
			t.Error(err)
		}
	}
	w.Hooks.Ended = func(j projection.Job, how worker.Ending, _ time.Duration) {
		ends = append(ends, string(how)+" "+j.State.String())
	}
	stats, err := w.Run(t.Context())
	if want := (worker.Stats{Claimed: 1, Cancelled: 1}); err != nil || stats != want {
		t.Errorf("got %+v, %v, want %+v", stats, err, want)
	}
	if want := []string{"cancelled cancelled"}; !slices.Equal(ends, want) {
		t.Errorf("the hook got %q, want %q", ends, want)
	}
	retried, err := service.Apply(t.Context(), "cli:ann", job.ID, commands.Retry{})
	if err != nil || retried.RunAt.After(time.Now()) {
		t.Errorf("retried after the work has ended: to run at %s, %v", retried.RunAt, err)
	}
	commandstest.Verify(t, store)
}
