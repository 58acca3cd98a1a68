package commands_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// TestCallsOfOwner: the calls of a claim's owner need no more than the job as Claim returned it, and are
// refused once its token is not live.
func TestCallsOfOwner(t *testing.T) {
	q, ctx := newQueue(t), t.Context()
	id := q.enqueue(commands.Enqueue{Payload: []byte("Ada"), MaxAttempts: 2}).ID
	fraction := 0.5
	for _, step := range []struct {
		name string
		call func(projection.Job) (projection.Job, error)
		want event.State
		wait time.Duration
	}{
		{"release", func(j projection.Job) (projection.Job, error) {
			return q.Service.Release(ctx, j, commands.Release{Reason: "later"})
		}, event.Queued, 0},
		{"snooze", func(j projection.Job) (projection.Job, error) {
			return q.Service.Snooze(ctx, j, time.Hour)
		}, event.Queued, time.Hour},
		{"fail", func(j projection.Job) (projection.Job, error) {
			return q.Service.Fail(ctx, j, commands.Fail{Code: "smtp", Detail: "451"})
		}, event.Queued, time.Hour},
		{"complete", func(j projection.Job) (projection.Job, error) {
			return q.Service.Complete(ctx, j, []byte("sent"))
		}, event.SucceededState, 0},
	} {
		job := q.claimOne("w1")
		beaten, err := q.Service.Heartbeat(ctx, job, commands.Heartbeat{Progress: &fraction})
		if err != nil || !beaten.LeaseUntil.Equal(q.Now.Add(commands.DefaultLease)) {
			t.Fatalf("%s: heartbeat: lease until %v, %v", step.name, beaten.LeaseUntil, err)
		}
		if after, err := step.call(job); err != nil || after.State != step.want {
			t.Fatalf("%s: %v, %v", step.name, after.State, err)
		}
		if _, err := q.Service.Heartbeat(ctx, job, commands.Heartbeat{}); err == nil {
			t.Errorf("%s: a heartbeat after it is not refused", step.name)
		}
		q.Now = q.Now.Add(step.wait)
	}
	job, err := q.Service.Get(ctx, id)
	if err != nil || string(job.Payload) != "Ada" || string(job.Result) != "sent" {
		t.Errorf("get: %q, %q, %v", job.Payload, job.Result, err)
	}
	events, err := q.Service.History(ctx, id)
	var kinds []string
	for _, e := range events {
		if k := e.Kind().String(); k != "heartbeat" && k != "refused" {
			kinds = append(kinds, k)
		}
		if e.Kind() != event.KindEnqueued && e.Actor != "worker:w1" {
			t.Errorf("%s is by %s", e.Kind(), e.Actor)
		}
	}
	want := []string{"enqueued", "claimed", "released", "claimed", "released", "claimed", "failed", "claimed",
		"succeeded"}
	if err != nil || !slices.Equal(kinds, want) {
		t.Errorf("history: %v, %v", kinds, err)
	}
	unclaimed := projection.Job{ID: id}
	if _, err := q.Service.Complete(ctx, unclaimed, nil); !errors.Is(err, commands.ErrInvalid) {
		t.Errorf("complete of a job that was not claimed: %v", err)
	}
	q.Verify()
}

// TestCallsOfOperator: each is the command of its name.
func TestCallsOfOperator(t *testing.T) {
	q, ctx := newQueue(t), t.Context()
	id := q.enqueue(commands.Enqueue{Hold: true}).ID
	priority := 7
	for _, step := range []struct {
		call func() (projection.Job, error)
		want event.State
	}{
		{func() (projection.Job, error) { return q.Service.Unblock(ctx, "ada", id, "") }, event.Queued},
		{func() (projection.Job, error) {
			return q.Service.Reschedule(ctx, "ada", id, commands.Reschedule{Priority: &priority})
		}, event.Queued},
		{func() (projection.Job, error) { return q.Service.Cancel(ctx, "ada", id, "no") }, event.CancelledState},
		{func() (projection.Job, error) { return q.Service.Erase(ctx, "ada", id, "no") }, event.CancelledState},
	} {
		if after, err := step.call(); err != nil || after.State != step.want {
			t.Errorf("%v, %v; want %v", after.State, err, step.want)
		}
	}
	if _, err := q.Service.Retry(ctx, "ada", id, commands.Retry{}); !errors.Is(err, commands.ErrConflict) {
		t.Errorf("retry of an erased job: %v", err)
	}
	for _, none := range []event.JobID{"", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "\xff"} {
		if _, err := q.Service.Get(ctx, none); !errors.Is(err, commands.ErrNoJob) {
			t.Errorf("get %q: %v", none, err)
		}
		if _, err := q.Service.History(ctx, none); !errors.Is(err, commands.ErrNoJob) {
			t.Errorf("history of %q: %v", none, err)
		}
	}
	jobs, err := q.Service.List(ctx, projection.Filter{})
	if err != nil || len(jobs) != 1 || jobs[0].Priority != 7 {
		t.Errorf("list: %+v, %v", jobs, err)
	}
	q.Verify()
}
