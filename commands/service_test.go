package commands_test

import (
	"errors"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// queue is a Scenario with the helpers that the tests of this package use most.
type queue struct{ *commandstest.Scenario }

func newQueue(t testing.TB) *queue {
	t.Helper()
	return &queue{commandstest.New(t)}
}

func (q *queue) enqueue(e commands.Enqueue) projection.Job {
	q.T.Helper()
	if e.Queue == "" {
		e.Queue = "mail"
	}
	jobs, err := q.Enqueue(q.T.Context(), "cli:test", e)
	if err != nil {
		q.T.Fatalf("enqueue: %v", err)
	}
	return jobs[0].Job
}

func (q *queue) claim(worker string, change ...func(*commands.ClaimRequest)) []projection.Job {
	q.T.Helper()
	r := commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: worker, Boot: "boot-" +
		worker}, Lease: time.Minute}
	for _, c := range change {
		c(&r)
	}
	jobs, err := q.Claim(q.T.Context(), r)
	if err != nil {
		q.T.Fatalf("claim by %s: %v", worker, err)
	}
	return jobs
}

func (q *queue) claimOne(worker string, change ...func(*commands.ClaimRequest)) projection.Job {
	q.T.Helper()
	jobs := q.claim(worker, change...)
	if len(jobs) != 1 {
		q.T.Fatalf("claim by %s: got %d jobs, want 1", worker, len(jobs))
	}
	return jobs[0]
}

func (q *queue) sweep() []projection.Job {
	q.T.Helper()
	s := commands.Sweeper{Service: q.Service, Actor: "sweeper:test", Grace: new(time.Duration)}
	r, err := s.Sweep(q.T.Context())
	if err != nil {
		q.T.Fatalf("sweep: %v", err)
	}
	return r.Reclaimed
}

func (q *queue) kinds(id event.JobID) (kinds []string) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) error {
		j, _, err := projection.Get(q.T.Context(), tx, id)
		if err != nil {
			return err
		}
		for e, err := range tx.Events(q.T.Context(), ledger.Filter{Job: j.N}) {
			if err != nil {
				return err
			}
			kinds = append(kinds, e.Kind().String())
		}
		return nil
	})
	if err != nil {
		q.T.Fatalf("events of %s: %v", id, err)
	}
	return kinds
}

func TestServiceEnqueuedToSucceeded(t *testing.T) {
	q := newQueue(t)
	enqueued := q.enqueue(commands.Enqueue{Payload: []byte("hello\x00"),
		Tags: map[string]string{"customer": "17"}, Key: "k"})
	j := q.claimOne("w1")
	if string(j.Payload) != "hello\x00" || j.ID != enqueued.ID || j.Attempt != 1 || j.Token == "" ||
		j.Tags["customer"] != "17" {
		t.Errorf("claimed %+v", j)
	}
	q.Now = q.Now.Add(20 * time.Second)
	half := 0.5
	out, err := q.ApplyBatch(t.Context(), "worker:w1",
		[]commands.Op{{Job: j, Command: commands.Heartbeat{Token: j.Token, Lease: time.Minute, Progress: &half}}})
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	j = out[0].Job
	if j.State != event.Running || !j.LeaseUntil.Equal(q.Now.Add(time.Minute)) {
		t.Errorf("after heartbeat: %+v", j)
	}
	zero := 0
	done, err := q.Apply(t.Context(), "worker:w1", j.ID, commands.Succeed{Token: j.Token, Result: []byte("ok"),
		ExitCode: &zero})
	if err != nil || done.State != event.SucceededState || done.Worker.Name != "w1" {
		t.Errorf("succeed: %+v, %v", done, err)
	}
	again, err := q.Apply(t.Context(), "worker:w1", j.ID, commands.Succeed{Token: j.Token, Result: []byte("ok"),
		ExitCode: &zero})
	if err != nil || again.Seq != done.Seq {
		t.Errorf("the same command sent again: %+v, %v", again, err)
	}
	if got := q.kinds(j.ID); len(got) != 4 {
		t.Errorf("events: %v", got)
	}
}

func TestServiceRefusesZombie(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	a := q.claimOne("a")
	q.Now = q.Now.Add(61 * time.Second)
	if got := q.sweep(); len(got) != 1 || got[0].State != event.Queued || got[0].Failures != 1 {
		t.Fatalf("sweep: %+v", got)
	}
	q.Now = q.Now.Add(2 * time.Second)
	b := q.claimOne("b")
	for range 2 { // the second is refused too, and not recorded again
		_, err := q.Apply(t.Context(), "worker:a", a.ID, commands.Succeed{Token: a.Token, Result: []byte("late")})
		var refused *commands.RefusedError
		if !errors.As(err, &refused) || !errors.Is(err, commands.ErrLeaseLost) {
			t.Fatalf("zombie: got %v, want a RefusedError", err)
		}
	}
	// from a stale copy of the job in memory, with another job in the batch
	out, err := q.ApplyBatch(t.Context(), "worker:b", []commands.Op{
		{Job: a, Command: commands.Fail{Token: a.Token}},
		{Job: b, Command: commands.Succeed{Token: b.Token}},
	})
	if err != nil || !errors.Is(out[0].Err, commands.ErrLeaseLost) || out[1].Err != nil {
		t.Fatalf("steps: %+v, %v", out, err)
	}
	want := []string{"enqueued", "claimed", "reclaimed", "claimed", "refused", "refused", "succeeded"}
	if got := q.kinds(a.ID); len(got) != len(want) {
		t.Errorf("events: got %v, want %v", got, want)
	}
}
