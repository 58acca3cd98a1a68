package commands

import (
	"context"
	"errors"
	"slices"

	"jobledger/ledger"
	"jobledger/projection"
)

// Op is one command on a job that the caller holds in memory. The compare-and-swap catches one that is out of
// date, and only then is the row read again.
type Op struct {
	Job     projection.Job
	Command Command
}

// Result is what became of a Step.
type Result struct {
	Job projection.Job
	Err error // as Do's; one refused step leaves its neighbours alone
}

// ApplyBatch carries out steps in one transaction, each with its own outcome: a heartbeat for all jobs of a process, say.
func (s *Service) ApplyBatch(ctx context.Context, actor string, steps []Op) ([]Result, error) {
	outcomes, _, err := s.turn(ctx, actor, steps, ClaimRequest{})
	return outcomes, err
}

// ApplyAndClaim carries out steps and then claims what r asks for, in one transaction: a worker that finishes jobs and wants
// the next ones pays for one commit.
func (s *Service) ApplyAndClaim(ctx context.Context, actor string, steps []Op, r ClaimRequest) ([]Result, []projection.Job, error) {
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	return s.turn(ctx, actor, steps, r)
}

// turn is together, unless that fails because of what the ledger holds: then one row is to blame, and each step is
// carried out by itself, so that a damaged job does not cost its neighbours their leases.
func (s *Service) turn(ctx context.Context, actor string, steps []Op, r ClaimRequest) ([]Result, []projection.Job, error) {
	if err := CheckActor(actor); err != nil {
		return nil, nil, err
	}
	outcomes, claimed, err := s.together(ctx, actor, steps, r)
	if err == nil || len(steps) == 0 || storeFailed(err) {
		return outcomes, claimed, err
	}
	outcomes = make([]Result, len(steps))
	for i, step := range steps {
		one, _, err := s.together(ctx, actor, []Op{step}, ClaimRequest{})
		if storeFailed(err) {
			return nil, nil, err // what has been carried out may be sent again
		}
		if outcomes[i] = (Result{step.Job, err}); err == nil {
			outcomes[i] = one[0]
		}
	}
	_, claimed, err = s.together(ctx, actor, nil, r)
	if storeFailed(err) {
		return nil, nil, err
	}
	return outcomes, claimed, nil // the steps are done; what is wrong with the claim, the next one says
}

// together steps over a job that cannot be claimed because what the ledger holds of it contradicts itself: it must not
// keep the others from being claimed.
func (s *Service) together(ctx context.Context, actor string, steps []Op, r ClaimRequest) ([]Result, []projection.Job, error) {
	var first *projection.DamagedJobError
	var except []ledger.JobID
	for {
		outcomes, claimed, err := s.once(ctx, actor, steps, r, except)
		damaged, ok := errors.AsType[*projection.DamagedJobError](err)
		switch {
		case ok && damaged.Job != "" && len(except) < maxDamaged && !slices.Contains(except, damaged.Job):
			except = append(except, damaged.Job)
			if first == nil {
				first = damaged
			}
		case err == nil && first != nil && len(claimed) == 0 && len(steps) == 0:
			return nil, nil, first
		default:
			return outcomes, claimed, err
		}
	}
}

// maxDamaged is how many jobs a claim steps over.
const maxDamaged = 100

func (s *Service) once(ctx context.Context, actor string, steps []Op, r ClaimRequest, except []ledger.JobID) ([]Result, []projection.Job, error) {
	tokens := make([]string, r.Limit)
	for i := range tokens {
		tokens[i] = s.newID()
	}
	var outcomes []Result
	var claimed []projection.Job
	err := s.Store.Write(ctx, func(tx *ledger.Tx) (err error) {
		outcomes, claimed = make([]Result, len(steps)), nil
		want := projection.Want{Queues: r.Queues, Version: r.Version, Capabilities: r.Capabilities, Except: except}
		// What is to be claimed is looked for first, and read last, so that the database has it ready by then; but a step
		// that queues its job again may be the one who claims it.
		first := !slices.ContainsFunc(steps, mayQueue)
		var search *projection.Search
		if first && r.Limit > 0 {
			if search, err = projection.Seek(ctx, tx, want, tx.Now(), r.Limit); err != nil {
				return err
			}
		}
		for i, step := range steps {
			j, err := step.Job, check(step.Command)
			if err == nil {
				j, err = carryOut(ctx, tx, actor, step.Job, step.Command)
			}
			if err != nil && !isVerdict(err) {
				return err
			}
			outcomes[i] = Result{j, err}
		}
		if r.Limit == 0 {
			return nil
		}
		if !first {
			if search, err = projection.Seek(ctx, tx, want, tx.Now(), r.Limit); err != nil {
				return err
			}
		}
		found, err := search.Jobs(ctx)
		if err != nil {
			return err
		}
		claimed = found
		for i, j := range found {
			if claimed[i], err = carryOut(ctx, tx, actor, j, Claim{Token: tokens[i], Worker: r.Worker, Lease: r.Lease, MaxRuntime: r.MaxRuntime}); err != nil {
				return cannotClaim(j, err)
			}
		}
		return nil
	})
	if errors.Is(err, ledger.ErrUnknown) && len(tokens) > 0 {
		// Nobody knows whether these claims are durable, but the ledger does.
		if mine, lookErr := s.lookUp(context.WithoutCancel(ctx), r.Worker, tokens); lookErr == nil && len(mine) > 0 {
			return outcomes, mine, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return outcomes, claimed, nil
}

// mayQueue reports whether a step may put its job back into its queue.
func mayQueue(s Op) bool {
	switch s.Command.(type) {
	case Succeed, Heartbeat:
		return false
	}
	return true
}

// isVerdict reports whether err is the answer to one step rather than a failure of the transaction.
func isVerdict(err error) bool {
	return errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrCancelled) || errors.Is(err, ErrConflict) || errors.Is(err, ErrNoJob) || errors.Is(err, ErrInvalid)
}

// storeFailed reports whether err says that the ledger or the caller was not ready, rather than that something in it
// is wrong.
func storeFailed(err error) bool {
	for _, target := range []error{ledger.ErrBusy, ledger.ErrFull, ledger.ErrIO, ledger.ErrReadOnly, ledger.ErrUnknown, ledger.ErrReplaced, ledger.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
