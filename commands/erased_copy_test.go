package commands_test

import (
	"errors"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/projection"
)

// A zombie's copy of the job, without payload and salt, still has a live token, but the body that its result
// would be digested with has been erased. The answer is a lost lease, not a damaged ledger.
func TestStaleCopyOfAnErasedJobIsRefused(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{Payload: []byte("p")})
	a := q.claimOne("a")
	q.Now = a.LeaseUntil
	q.sweep()
	q.Now = q.Now.Add(time.Minute)
	b := q.claimOne("b")
	q.do(b, commands.Succeed{Token: b.Token, Result: []byte("mine")})
	q.do(b, commands.Erase{})
	a.Payload, a.Salt = nil, nil
	for range 2 {
		out, err := q.ApplyBatch(t.Context(), "worker:a",
			[]commands.Op{{Job: a, Command: commands.Succeed{Token: a.Token, Result: []byte("late")}}})
		if err != nil || !errors.Is(out[0].Err, commands.ErrLeaseLost) {
			t.Fatalf("got %+v, %v, want ErrLeaseLost", out, err)
		}
	}
	if _, refused := q.events(projection.Job{N: a.N}); len(refused) != 1 {
		t.Errorf("got %d refused events, want 1", len(refused))
	}
}

// Erasing is not a transition, so a copy from before the erasure still has the right seq.
func TestStaleCopyFromBeforeErasing(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{Payload: []byte("p")})
	j := q.claimOne("w")
	j = q.do(j, commands.Succeed{Token: j.Token})
	q.do(j, commands.Erase{})
	tail := q.Tail()
	out, err := q.ApplyBatch(t.Context(), "cli:test", []commands.Op{{Job: j, Command: commands.Erase{}},
		{Job: j, Command: commands.Retry{}}})
	if err != nil || out[0].Err != nil || !out[0].Job.Erased || !errors.Is(out[1].Err, commands.ErrConflict) {
		t.Errorf("got %+v, %v, want nothing more to erase, and no retry of what is gone", out, err)
	}
	if got := q.Tail(); got != tail {
		t.Errorf("%d events, want %d", got, tail)
	}
}
