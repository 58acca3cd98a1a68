package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// answerLost is a ledger whose answer to the first claim is lost.
type answerLost struct {
	local
	claimed func() // is called once, after that claim
}

func (a *answerLost) ApplyAndClaim(ctx context.Context, actor string, ops []commands.Op,
	r commands.ClaimRequest) ([]commands.Result, []projection.Job, error) {
	if a.claimed == nil {
		return a.local.ApplyAndClaim(ctx, actor, ops, r)
	}
	for range r.Limit {
		r.Tokens = append(r.Tokens, ulid.Make().String())
	}
	if results, jobs, err := a.local.ApplyAndClaim(ctx, actor, ops, r); err != nil || len(jobs) == 0 {
		return results, jobs, err
	}
	a.claimed()
	a.claimed = nil
	return nil, nil, &commands.UnknownClaimError{Tokens: r.Tokens, Err: ledger.ErrUnknown}
}

// The answer to a claim is lost for longer than its lease, and a sweeper has reclaimed the job. The tokens of
// that claim are spent then: the worker makes others, and runs the job.
func TestWorkerMakesOtherTokensWhenClaimWasReclaimed(t *testing.T) {
	var late atomic.Int64
	store := ledgertest.Open(t)
	store.Now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	s := &commands.Service{Store: store}
	if _, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	backend := &answerLost{local: local{s}}
	backend.claimed = func() {
		late.Store(int64(time.Hour))
		sweeper := commands.Sweeper{Service: s, Actor: "sweeper:test", Grace: new(time.Duration)}
		if r, err := sweeper.Sweep(t.Context()); err != nil || len(r.Reclaimed) != 1 {
			t.Errorf("%+v, %v, want one job reclaimed", r, err)
		}
		late.Store(int64(2 * time.Hour)) // its backoff is over
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := &Worker{Backend: backend, Queues: []string{"q"}, MaxJobs: 1,
		Process: event.Worker{Name: "w", Boot: "b"},
		Handler: HandlerFunc(func(_ context.Context, j projection.Job) ([]byte, error) {
			if j.Attempt != 2 {
				t.Errorf("attempt %d", j.Attempt)
			}
			return nil, nil
		})}
	if stats, err := w.Run(ctx); err != nil || stats.Succeeded != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	commandstest.Verify(t, store)
}
