package commands

import (
	"time"

	"jobledger/commands/internal/burst"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// turnOf returns ops and a claim as a turn that can be one burst, with its plan; a nil plan where it cannot.
// What can keep it from being one later, the turn itself finds out.
func (s *Service) turnOf(actor string, ops []Op, r ClaimRequest, tokens []string, skip []event.JobID) (
	*burst.Turn, ledger.BurstPlan) {
	t := &burst.Turn{Actor: actor, Worker: r.Worker, Lease: r.Lease, Tokens: tokens, Want: r.want(skip),
		Now: s.Store.Now}
	if r.Limit == 0 || r.Tokens != nil || r.MaxRuntime != 0 || len(skip) > 0 || len(r.Queues) != 1 {
		return t, nil
	}
	t.Ends = make([]burst.End, len(ops))
	for i, op := range ops {
		c, ok := op.Command.(Succeed)
		if !ok || CheckCommand(c) != nil || c.Result != nil && op.Job.Salt == nil {
			return t, nil
		}
		t.Ends[i] = burst.End{Job: op.Job, Decide: func(at time.Time) (journal.Fact, error) {
			return decide(op.Job, c, at)
		}}
	}
	t.Claim = func(j projection.Job, token string, at time.Time) (journal.Fact, error) {
		return decide(j, claim{Token: token, Worker: r.Worker, Lease: r.Lease}, at)
	}
	return t, t.Plan
}

// resultsOf returns the results of a turn that was one burst.
func resultsOf(t *burst.Turn) []Result {
	results := make([]Result, len(t.Ended))
	for i, j := range t.Ended {
		results[i] = Result{Job: j}
	}
	return results
}
