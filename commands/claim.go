package commands

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"jobledger/commands/internal/asof"
	"jobledger/commands/internal/check"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/claims"
	"jobledger/projection/inbox"
)

// MaxClaim is how many jobs one claim may take.
const MaxClaim = 1000

// ClaimRequest says which jobs to claim, and for which worker.
type ClaimRequest struct {
	Queues       []string
	Version      string   // jobs that require no version or this one
	Capabilities []string // jobs that require none but these
	Worker       event.Worker
	Lease        time.Duration // default DefaultLease
	MaxRuntime   time.Duration // the worker's limit for each job; 0: that of the job, if any
	Limit        int           // 1 to MaxClaim; default 1, or as many as there are Tokens

	// Tokens are the lease tokens of the claims, one for each job: ULIDs that the caller has made for this
	// request. The request may be sent again, by a caller that got no answer: as long as claims of Worker with
	// these tokens live, the answer is these claims, and nothing else happens. nil: fresh ones.
	Tokens []string
}

// Check returns an InvalidError for the first field outside of what is allowed.
func (r ClaimRequest) Check() error {
	r.setDefaults()
	if len(r.Queues) == 0 {
		return CheckQueue("")
	}
	err := invalid(cmp.Or(check.Queues(r.Queues), check.Labels("capability", r.Capabilities),
		check.Optional("version", r.Version), check.Worker(r.Worker), check.Runtime(r.MaxRuntime)))
	if err != nil {
		return err
	}
	if r.Limit < 0 || r.Limit > MaxClaim {
		return &InvalidError{"limit", fmt.Sprint(r.Limit), fmt.Sprintf("1 to %d", MaxClaim)}
	}
	return cmp.Or(invalid(check.Tokens(r.Tokens, r.Limit)), CheckLease(r.Lease))
}

func (r *ClaimRequest) setDefaults() {
	r.Lease = cmp.Or(r.Lease, DefaultLease)
	r.Limit = cmp.Or(r.Limit, len(r.Tokens), 1)
}

// want is what the jobs must be like, without those in except.
func (r ClaimRequest) want(except []event.JobID) claims.Want {
	return claims.Want{Queues: r.Queues, Version: r.Version, Capabilities: r.Capabilities, Except: except}
}

// claim is the action of taking a queued job for a worker.
type claim struct {
	Token      string
	Worker     event.Worker
	Lease      time.Duration
	MaxRuntime time.Duration // the worker's limit; 0: none
	Limited    bool          // the queue has limits
}

func (claim) name() string { return "claim" }

// Claim takes up to r.Limit jobs for r.Worker, each with its token and its payload. It returns none, and no
// error, if none is ready. A token of r.Tokens that was given for the same job before, and is not live any
// more, is a ConflictError: the caller makes others.
func (s *Service) Claim(ctx context.Context, r ClaimRequest) ([]projection.Job, error) {
	_, jobs, err := s.ApplyAndClaim(ctx, "worker:"+r.Worker.Name, nil, r)
	return jobs, err
}

// Ready reports whether a claim would find a job, or rows of the inbox that may become one, and if not, the
// run_at of the next one that fits; zero if there is none. It only reads: waiting for work takes no write
// lock.
func (s *Service) Ready(ctx context.Context, r ClaimRequest) (ready bool, next time.Time, err error) {
	if err := r.Check(); err != nil {
		return false, next, err
	}
	err = s.peek(ctx, func(tx *ledger.Tx) error {
		rows := inbox.Ask(tx)
		next, err = claims.NextRunAt(ctx, tx, r.want(nil))
		waits, askErr := rows.Answer(ctx)
		ready = waits || !next.IsZero() && !next.After(tx.Now())
		return cmp.Or(err, askErr)
	})
	return ready, next, err
}

// take claims the jobs of search, one token each.
func (r ClaimRequest) take(ctx context.Context, tx *ledger.Tx, actor string, search *claims.Search,
	tokens []string) ([]projection.Job, error) {
	jobs, err := search.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		if err := r.checkSpent(ctx, tx, j, tokens[i]); err != nil {
			return nil, err
		}
		c := claim{Token: tokens[i], Worker: r.Worker, Lease: r.Lease, MaxRuntime: r.MaxRuntime,
			Limited: search.Limited(j.Queue)}
		if jobs[i], err = apply(ctx, tx, actor, j, c); err != nil {
			return nil, cannotClaim(j, err)
		}
	}
	return jobs, nil
}

// checkSpent returns a ConflictError if a token of the caller's making was given for j before: a second claim
// with it would be taken for the first one.
func (r ClaimRequest) checkSpent(ctx context.Context, tx *ledger.Tx, j projection.Job, token string) error {
	if r.Tokens == nil || j.Attempt == 0 {
		return nil
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Job: j.N, Kinds: []event.Kind{event.KindClaimed}}) {
		if err != nil {
			return err
		}
		if e.Token == token {
			return &ConflictError{"claim", j.ID, fmt.Sprintf("the token %s was given for it before", token)}
		}
	}
	return nil
}

// cannotClaim says that the ledger is damaged at j. Nothing else can prevent the claim of a job that was
// found in the same transaction.
func cannotClaim(j projection.Job, err error) error {
	if StoreFailed(err) {
		return err
	}
	return &claims.DamagedJobError{Job: j.ID, Err: fmt.Errorf("cannot be claimed: %w", err)}
}

// Held returns the jobs that the worker process with this boot holds, each with its token and payload, the
// lease that ends first in front.
func (s *Service) Held(ctx context.Context, boot string) (held []projection.Job, err error) {
	return asof.Read(ctx, s.past(), func(tx *ledger.Tx) ([]projection.Job, error) {
		return projection.HeldBy(ctx, tx, boot)
	})
}

// heldBy returns the jobs that w holds with one of these tokens.
func (s *Service) heldBy(ctx context.Context, w event.Worker, tokens []string) (
	mine []projection.Job, err error) {
	return asof.Read(ctx, s.past(), func(tx *ledger.Tx) ([]projection.Job, error) {
		return projection.HeldWith(ctx, tx, w, tokens)
	})
}

// tokensOf returns the lease tokens for r, one for each job of the claim.
func (s *Service) tokensOf(r ClaimRequest) []string {
	if r.Tokens != nil {
		return r.Tokens
	}
	tokens := make([]string, r.Limit)
	for i := range tokens {
		tokens[i] = s.newID()
	}
	return tokens
}
