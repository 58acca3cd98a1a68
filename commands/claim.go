package commands

import (
	"context"
	"fmt"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
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
	Limit        int           // 1 to MaxClaim; default 1
}

// Check returns an InvalidError for the first field outside of what is allowed.
func (r ClaimRequest) Check() error {
	r.setDefaults()
	if len(r.Queues) == 0 {
		return CheckQueue("")
	}
	for _, q := range r.Queues {
		if err := CheckQueue(q); err != nil {
			return err
		}
	}
	for _, label := range r.Capabilities {
		if err := CheckLabel("capability", label); err != nil {
			return err
		}
	}
	if r.Version != "" {
		if err := CheckLabel("version", r.Version); err != nil {
			return err
		}
	}
	if err := checkWorker(r.Worker); err != nil {
		return err
	}
	if err := checkRuntime(r.MaxRuntime); err != nil {
		return err
	}
	if r.Limit < 0 || r.Limit > MaxClaim {
		return &InvalidError{"limit", fmt.Sprint(r.Limit), fmt.Sprintf("1 to %d", MaxClaim)}
	}
	return CheckLease(r.Lease)
}

func (r *ClaimRequest) setDefaults() {
	if r.Lease == 0 {
		r.Lease = DefaultLease
	}
	if r.Limit == 0 {
		r.Limit = 1
	}
}

// want is what the jobs must be like, without those in except.
func (r ClaimRequest) want(except []event.JobID) projection.Want {
	return projection.Want{Queues: r.Queues, Version: r.Version, Capabilities: r.Capabilities, Except: except}
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

// Claim takes up to r.Limit jobs for r.Worker, each with a fresh token and its payload. It returns none, and
// no error, if none is ready.
func (s *Service) Claim(ctx context.Context, r ClaimRequest) ([]projection.Job, error) {
	_, jobs, err := s.ApplyAndClaim(ctx, "worker:"+r.Worker.Name, nil, r)
	return jobs, err
}

// Ready reports whether a claim would find a job, and if not, the run_at of the next one that fits; zero if
// there is none. It only reads: waiting for work takes no write lock.
func (s *Service) Ready(ctx context.Context, r ClaimRequest) (ready bool, next time.Time, err error) {
	if err := r.Check(); err != nil {
		return false, next, err
	}
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		var err error
		next, err = projection.NextRunAt(ctx, tx, r.want(nil))
		ready = !next.IsZero() && !next.After(tx.Now())
		return err
	})
	return ready, next, err
}

// take claims the jobs of search, one token each.
func (r ClaimRequest) take(ctx context.Context, tx *ledger.Tx, actor string, search *projection.Search,
	tokens []string) ([]projection.Job, error) {
	jobs, err := search.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		c := claim{Token: tokens[i], Worker: r.Worker, Lease: r.Lease, MaxRuntime: r.MaxRuntime,
			Limited: search.Limited(j.Queue)}
		if jobs[i], err = apply(ctx, tx, actor, j, c); err != nil {
			return nil, cannotClaim(j, err)
		}
	}
	return jobs, nil
}

// cannotClaim says that the ledger is damaged at j. Nothing else can prevent the claim of a job that was
// found in the same transaction.
func cannotClaim(j projection.Job, err error) error {
	if StoreFailed(err) {
		return err
	}
	return &projection.DamagedJobError{Job: j.ID, Err: fmt.Errorf("cannot be claimed: %w", err)}
}

// heldBy returns the jobs that w holds with one of these tokens.
func (s *Service) heldBy(ctx context.Context, w event.Worker, tokens []string) (
	mine []projection.Job, err error) {
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		mine = nil
		held, err := projection.Held(ctx, tx, w)
		if err != nil {
			return err
		}
		for _, j := range held {
			if !slices.Contains(tokens, j.Token) {
				continue
			}
			if err := projection.LoadBodies(ctx, tx, &j); err != nil {
				return err
			}
			mine = append(mine, j)
		}
		return nil
	})
	return mine, err
}

// newTokens returns n fresh lease tokens, one for each job of a claim.
func (s *Service) newTokens(n int) []string {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = s.newID()
	}
	return tokens
}
