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

// events returns the events of a job, and the refusals among them.
func (q *queue) events(j projection.Job) (all, refused []event.Event) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(q.T.Context(), ledger.Filter{Job: j.N}) {
			if err != nil {
				return err
			}
			if all = append(all, e); e.Kind() == event.KindRefused {
				refused = append(refused, e)
			}
		}
		return nil
	})
	if err != nil {
		q.T.Fatal(err)
	}
	return all, refused
}

// refuses checks that c is refused with target and returns the error.
func (q *queue) refuses(j projection.Job, c commands.Command, target error) *commands.RefusedError {
	q.T.Helper()
	_, err := q.Apply(q.T.Context(), "worker:zombie", j.ID, c)
	var refused *commands.RefusedError
	if !errors.As(err, &refused) || !errors.Is(err, target) {
		q.T.Fatalf("%T: got %v, want a RefusedError: %v", c, err, target)
	}
	return refused
}

func (q *queue) do(j projection.Job, c commands.Command) projection.Job {
	q.T.Helper()
	after, err := q.Apply(q.T.Context(), "cli:test", j.ID, c)
	if err != nil {
		q.T.Fatalf("%T: %v", c, err)
	}
	return after
}

func TestRefusedIsRecordedOncePerTokenAndCommand(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{Payload: []byte("p")})
	a := q.claimOne("a")
	q.Now = q.Now.Add(time.Minute)
	q.sweep()
	q.Now = q.Now.Add(time.Minute)
	b := q.claimOne("b")
	for range 3 {
		q.refuses(a, commands.Succeed{Token: a.Token, Result: []byte("late")}, commands.ErrLeaseLost)
		q.refuses(a, commands.Succeed{Token: a.Token, Result: []byte("later")}, commands.ErrLeaseLost)
		q.refuses(a, beat(a.Token), commands.ErrLeaseLost)
		q.refuses(a, commands.Fail{Token: a.Token}, commands.ErrLeaseLost)
		q.refuses(a, commands.Release{Token: a.Token}, commands.ErrLeaseLost)
		if r := q.refuses(a, beat("never given"), commands.ErrLeaseLost); r.Job != a.ID ||
			r.Token != "never given" || r.Command != "heartbeat" || r.Why == "" {
			t.Errorf("got %+v", r)
		}
	}
	_, refused := q.events(a)
	if len(refused) != 5 {
		t.Fatalf("got %d refused events, want 5: %+v", len(refused), refused)
	}
	for i, command := range []string{"succeed", "heartbeat", "fail", "release"} {
		e := refused[i]
		if got := e.Body.(*event.Refused); got.Command != command || got.Why == "" {
			t.Errorf("refused %d: %+v", i, got)
		}
		if e.Actor != "worker:zombie" || e.Worker.Name != "a" || e.Worker.Boot != "boot-a" || e.Token != a.Token ||
			e.Attempt != 1 || e.Seq != 0 {
			t.Errorf("refused %d does not name the old claim: %+v", i, e)
		}
	}
	if e := refused[4]; e.Worker != (event.Worker{}) || e.Attempt != 0 || e.Token != "never given" {
		t.Errorf("a token that was never given names a claim: %+v", e)
	}
	offered := refused[0].Body.(*event.Refused)
	if offered.OfferedBytes != 4 || b.Salt == nil || offered.OfferedSHA256 != ledger.Digest(b.Salt,
		[]byte("late")) {
		t.Errorf("the offered result is not named by its digest: %+v", offered)
	}
	q.do(b, commands.Succeed{Token: b.Token, Result: []byte("mine")})
	q.refuses(a, beat(a.Token), commands.ErrLeaseLost)
}

func TestRefusedCancelledForTheLatestClaim(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	a := q.claimOne("a")
	q.Now = q.Now.Add(time.Minute)
	q.sweep()
	q.Now = q.Now.Add(time.Minute)
	b := q.claimOne("b")
	q.do(b, commands.Cancel{Reason: "wrong customer"})
	if again := q.do(b, commands.Cancel{}); again.Seq != b.Seq+1 {
		t.Errorf("cancelling what is cancelled made an event: seq %d", again.Seq)
	}
	q.refuses(b, beat(b.Token), commands.ErrCancelled)
	q.refuses(b, commands.Succeed{Token: b.Token}, commands.ErrCancelled)
	q.refuses(a, beat(a.Token), commands.ErrLeaseLost) // not the latest claim
	q.do(b, commands.Retry{Now: true})
	q.refuses(b, commands.Fail{Token: b.Token}, commands.ErrCancelled)
	c := q.claimOne("c")
	q.refuses(b, commands.Release{Token: b.Token}, commands.ErrLeaseLost) // claimed again
	q.refuses(b, beat(b.Token), commands.ErrLeaseLost)
	if got := q.do(c, beat(c.Token)); got.Token != c.Token || got.Attempt != 3 {
		t.Errorf("the live claim: %+v", got)
	}
	all, refused := q.events(c)
	if e := all[4]; e.Kind() != event.KindCancelled || e.Worker.Name != "b" || e.Token != b.Token ||
		e.Attempt != 2 || e.Actor != "cli:test" {
		t.Errorf("cancelled does not name the claim that it ended: %+v", e)
	}
	if len(refused) != 5 {
		t.Errorf("got %d refused events, want 5", len(refused))
	}
}

func TestRefusedNotForRepeatedEnding(t *testing.T) {
	zero, one := 0, 1
	for _, test := range []struct {
		name       string
		end, other commands.Command // with the token left out
	}{
		{"succeed", commands.Succeed{}, commands.Succeed{Result: []byte{}}},
		{"succeed with a result", commands.Succeed{Result: []byte("r"), ExitCode: &zero},
			commands.Succeed{Result: []byte("R"), ExitCode: &zero}},
		{"succeed with an empty result", commands.Succeed{Result: []byte{}}, commands.Succeed{}},
		{"fail", commands.Fail{}, commands.Fail{Code: "oom"}},
		{"fail with everything", commands.Fail{Code: "c", Detail: "d", ExitCode: &one, Signal: "TERM",
			NoRetry: true}, commands.Fail{Code: "c", Detail: "d", ExitCode: &zero, Signal: "TERM", NoRetry: true}},
		{"fail, to be retried", commands.Fail{Code: "c"}, commands.Fail{Code: "c", NoRetry: true}},
		{"release", commands.Release{Reason: "deploy", Delay: time.Hour}, commands.Succeed{}},
		{"snooze", commands.Release{Reason: "busy", Snooze: true}, commands.Release{Reason: "busy"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := newQueue(t)
			q.enqueue(commands.Enqueue{})
			j := q.claimOne("w")
			end, other := commandstest.WithToken(test.end, j.Token), commandstest.WithToken(test.other, j.Token)
			first := q.do(j, end)
			q.Now = q.Now.Add(time.Hour)
			events := q.Tail()
			if again := q.do(j, end); again.Seq != first.Seq || again.State != first.State {
				t.Errorf("again: %+v, first %+v", again, first)
			}
			// the same command from a stale copy
			out, err := q.ApplyBatch(t.Context(), "worker:w", []commands.Op{{Job: j, Command: end}})
			if err != nil || out[0].Err != nil || out[0].Job.Seq != first.Seq {
				t.Errorf("again by a stale copy: %+v, %v", out, err)
			}
			if q.Tail() != events {
				t.Errorf("sending it again made an event")
			}
			q.refuses(j, other, commands.ErrConflict)
			q.refuses(j, beat(j.Token), commands.ErrConflict)
			if q.Tail() != events+1 { // a heartbeat that crosses the end of its own claim is not a zombie's
				t.Errorf("%d events for a refusal and a late heartbeat", q.Tail()-events)
			}
		})
	}
}

func TestRefusedTokenOfAnotherJob(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{ID: id(1)})
	q.enqueue(commands.Enqueue{ID: id(2)})
	jobs := q.claim("w", limit(2))
	q.refuses(jobs[0], commands.Succeed{Token: jobs[1].Token}, commands.ErrLeaseLost)
	if _, err := q.Apply(t.Context(), "cli:test", event.JobID(id(3)), beat(jobs[0].Token)); !errors.Is(err,
		commands.ErrNoJob) {
		t.Errorf("a job that is not there: %v", err)
	}
	out, err := q.ApplyBatch(t.Context(), "worker:w", []commands.Op{
		{Job: jobs[0], Command: commands.Succeed{Token: jobs[1].Token}},
		{Job: projection.Job{ID: event.JobID(id(3))}, Command: commands.Cancel{}},
		{Job: jobs[1], Command: commands.Succeed{Token: jobs[1].Token}},
		{Job: projection.Job{ID: jobs[0].ID}, Command: commands.Cancel{}}, // only an id
	})
	if err != nil || !errors.Is(out[0].Err, commands.ErrLeaseLost) ||
		!errors.Is(out[1].Err, commands.ErrNoJob) || out[2].Err != nil || out[3].Err != nil {
		t.Errorf("got %+v, %v", out, err)
	}
}

// A copy in memory may be stale in a way that makes the command a no-op: then no compare-and-swap notices.
func TestStaleCopyIsNotTrusted(t *testing.T) {
	q := newQueue(t)
	j := q.enqueue(commands.Enqueue{})
	cancelled := q.do(j, commands.Cancel{})
	q.do(j, commands.Retry{})
	out, err := q.ApplyBatch(t.Context(), "cli:test",
		[]commands.Op{{Job: cancelled, Command: commands.Cancel{}}})
	if err != nil || out[0].Err != nil || out[0].Job.Seq != 4 {
		t.Errorf("cancel of a copy that is cancelled, of a job that is queued: %+v, %v", out, err)
	}
	out, err = q.ApplyBatch(t.Context(), "cli:test", []commands.Op{{Job: j, Command: commands.Retry{}}})
	if err != nil || out[0].Err != nil || out[0].Job.State != event.Queued {
		t.Errorf("retry of a copy that is queued, of a job that is cancelled: %+v, %v", out, err)
	}
	out, err = q.ApplyBatch(t.Context(), "cli:test", []commands.Op{
		{Job: out[0].Job, Command: commands.Reschedule{Priority: ref(3)}}, // both from the same copy
		{Job: out[0].Job, Command: commands.Reschedule{RunAt: ref(q.Now.Add(time.Hour))}},
	})
	if err != nil || out[0].Err != nil || out[1].Err != nil || out[1].Job.Priority != 3 || out[1].Job.Seq != 7 {
		t.Errorf("two steps on one copy: %+v, %v", out, err)
	}
}

func TestConflictChangesNothing(t *testing.T) {
	q := newQueue(t)
	j := q.enqueue(commands.Enqueue{})
	for _, c := range []commands.Command{commands.Retry{}} {
		if _, err := q.Apply(t.Context(), "cli:test", j.ID, c); !errors.Is(err, commands.ErrConflict) {
			t.Errorf("%T of a queued job: %v", c, err)
		}
	}
	j = q.claimOne("w")
	for _, c := range []commands.Command{commands.Retry{}, commands.Reschedule{Priority: ref(1)},
		commands.Heartbeat{Token: j.Token, Owner: "x", Lease: time.Minute}} {
		got, err := q.Apply(t.Context(), "cli:test", j.ID, c)
		var conflict *commands.ConflictError
		if !errors.As(err, &conflict) || conflict.Job != j.ID || got.N != 0 {
			t.Errorf("%T of a claimed job: %+v, %v", c, got, err)
		}
	}
	q.do(j, commands.Succeed{Token: j.Token})
	if _, err := q.Apply(t.Context(), "cli:test", j.ID, commands.Cancel{}); !errors.Is(err,
		commands.ErrConflict) {
		t.Errorf("cancel of a job that has succeeded: %v", err)
	}
	if got := q.Tail(); got != 3 {
		t.Errorf("%d events, want 3", got)
	}
}

func TestPauseAndResumeAreRecordedOnce(t *testing.T) {
	q := newQueue(t)
	for i, step := range []struct {
		do   func() (bool, error)
		want bool
	}{
		{func() (bool, error) { return q.Resume(t.Context(), "cli:a", "mail", "") }, false},
		{func() (bool, error) { return q.Pause(t.Context(), "cli:a", "mail", "lunch") }, true},
		{func() (bool, error) { return q.Pause(t.Context(), "cli:b", "mail", "again") }, false},
		{func() (bool, error) { return q.Resume(t.Context(), "cli:c", "mail", "back") }, true},
		{func() (bool, error) { return q.Resume(t.Context(), "cli:c", "mail", "back") }, false},
	} {
		if changed, err := step.do(); changed != step.want || err != nil {
			t.Errorf("step %d: %t, %v", i, changed, err)
		}
	}
	if _, err := q.Pause(t.Context(), "cli:a", "Mail", ""); !errors.Is(err, commands.ErrInvalid) {
		t.Errorf("a queue that cannot be: %v", err)
	}
	err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		got, err := projection.GetQueue(t.Context(), tx, "mail")
		if want := (projection.Queue{Name: "mail", Since: q.Now, Actor: "cli:c", Reason: "back"}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		return err
	})
	if err != nil || q.Tail() != 2 {
		t.Errorf("%v, %d events", err, q.Tail())
	}
}
