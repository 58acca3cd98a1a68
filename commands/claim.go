package commands

import (
	"context"
	"fmt"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
)

// ClaimRequest says for whom to claim what.
type ClaimRequest struct {
	Queues       []string
	Version      string
	Capabilities []string
	Worker       ledger.Worker
	Lease        time.Duration // default 1m
	MaxRuntime   time.Duration // the worker's own limit for each job; 0: the job's alone
	Limit        int           // default 1, up to MaxClaim
}

// MaxClaim is how many jobs one claim may take.
const MaxClaim = 1000

// Check returns an InvalidError for the first field outside of what is allowed.
func (r ClaimRequest) Check() error { return r.check() }

func (r *ClaimRequest) check() error {
	if r.Lease == 0 {
		r.Lease = DefaultLease
	}
	if r.Limit == 0 {
		r.Limit = 1
	}
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

// Claim takes up to r.Limit jobs for r.Worker, each with a fresh token and its payload. None ready: no error.
func (s *Service) Claim(ctx context.Context, r ClaimRequest) ([]projection.Job, error) {
	_, jobs, err := s.ApplyAndClaim(ctx, "worker:"+r.Worker.Name, nil, r)
	return jobs, err
}

// Ready reports whether a claim would find a job, and if not, when one that fits is scheduled (zero: none is).
// It only reads, so that waiting for work never takes the write lock.
func (s *Service) Ready(ctx context.Context, r ClaimRequest) (ready bool, next time.Time, err error) {
	if err := r.check(); err != nil {
		return false, next, err
	}
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		var err error
		next, err = projection.NextRunAt(ctx, tx, projection.Want{Queues: r.Queues, Version: r.Version, Capabilities: r.Capabilities})
		ready = !next.IsZero() && !next.After(tx.Now())
		return err
	})
	return ready, next, err
}

// cannotClaim says that the ledger is damaged where j stands: nothing else can be in the way of claiming a job that was
// found just now, in the same transaction.
func cannotClaim(j projection.Job, err error) error {
	if storeFailed(err) {
		return err
	}
	return &projection.DamagedJobError{Job: j.ID, Err: fmt.Errorf("cannot be claimed: %w", err)}
}

// lookUp returns the jobs that w holds with one of these tokens.
func (s *Service) lookUp(ctx context.Context, w ledger.Worker, tokens []string) (mine []projection.Job, err error) {
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		held, err := projection.Held(ctx, tx, w)
		if err != nil {
			return err
		}
		for _, j := range held {
			for _, token := range tokens {
				if j.Token != token {
					continue
				}
				if err := projection.LoadBodies(ctx, tx, &j); err != nil {
					return err
				}
				mine = append(mine, j)
			}
		}
		return nil
	})
	return mine, err
}
