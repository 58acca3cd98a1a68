package commands

import (
	"time"

	"jobledger/commands/internal/burst"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// turnOf returns ops and a claim as a turn, with the plan to make one burst of it; a nil plan if that is not
// possible. The plan is asked only where there are bursts, and does the rest of the work.
func (s *Service) turnOf(actor string, ops []Op, r ClaimRequest, tokens []string, skip []event.JobID) (
	*burst.Turn, ledger.BurstPlan) {
	t := &burst.Turn{Actor: actor, Worker: r.Worker, Lease: r.Lease, Tokens: tokens, Want: r.want(skip),
		Now: s.Store.Now}
	if r.Limit == 0 || r.Tokens != nil || r.MaxRuntime != 0 || len(skip) > 0 || len(r.Queues) != 1 {
		return t, nil
	}
	t.Claim = func(j projection.Job, token string, at time.Time) (journal.Fact, error) {
		return decide(j, claim{Token: token, Worker: r.Worker, Lease: r.Lease}, at)
	}
	return t, func(tx *ledger.Tx) *ledger.Burst {
		var plain bool
		if t.Ends, plain = endsOf(ops); !plain {
			return nil
		}
		return t.Plan(tx)
	}
}

// endsOf returns the ends of ops; plain is false if one of them is not a valid success.
func endsOf(ops []Op) (ends []burst.End, plain bool) {
	ends = make([]burst.End, len(ops))
	for i, op := range ops {
		c, ok := op.Command.(Succeed)
		if !ok || CheckCommand(c) != nil || c.Result != nil && op.Job.Salt == nil {
			return nil, false
		}
		ends[i] = burst.End{Job: op.Job, Decide: func(at time.Time) (journal.Fact, error) {
			return decide(op.Job, c, at)
		}}
	}
	return ends, true
}

// resultsOf returns the results of a turn that was one burst.
func resultsOf(t *burst.Turn) []Result {
	results := make([]Result, len(t.Ended))
	for i, j := range t.Ended {
		results[i] = Result{Job: j}
	}
	return results
}
