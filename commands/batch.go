package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/claims"
)

// Op is one command on a job that the caller holds in memory. If that copy is out of date, the
// compare-and-swap of the row detects it, and the row is read again.
type Op struct {
	Job     projection.Job
	Command Command
	AsSeen  bool // only where the Seq of the job is still that of Job; otherwise a MovedOnError
}

// Result is the outcome of an Op.
type Result struct {
	Job projection.Job
	Err error // as of Service.Apply; an Op that is refused does not affect the others
}

// ApplyBatch carries out ops in one transaction, each with its own Result: a heartbeat for every job of a
// process, for instance.
func (s *Service) ApplyBatch(ctx context.Context, actor string, ops []Op) ([]Result, error) {
	if err := CheckActor(actor); err != nil {
		return nil, err
	}
	results, _, err := s.applyOrIsolate(ctx, actor, ops, ClaimRequest{})
	return results, err
}

// ApplyAndClaim carries out ops and then claims what r asks for, in one transaction: a worker that finishes
// jobs and wants the next ones pays for one commit.
func (s *Service) ApplyAndClaim(ctx context.Context, actor string, ops []Op, r ClaimRequest) (
	[]Result, []projection.Job, error) {
	if err := r.Check(); err != nil {
		return nil, nil, err
	}
	if err := CheckActor(actor); err != nil {
		return nil, nil, err
	}
	for _, op := range ops {
		if c, ok := op.Command.(ownerCommand); ok {
			if token, _ := c.credentials(); slices.Contains(r.Tokens, token) {
				return nil, nil, &InvalidError{"tokens", fmt.Sprintf("%q", token),
					"tokens that belong to no claim in the same request"}
			}
		}
	}
	r.setDefaults()
	_ = s.takeIn(ctx, false) // it is tried again, and the ops and the claim do not depend on it
	return s.applyOrIsolate(ctx, actor, ops, r)
}

// maxSkipped is how many damaged jobs one claim skips.
const maxSkipped = 100

// applyOrIsolate carries out ops and the claim in one transaction; a Limit of 0 claims nothing. If the ledger
// is damaged at a job that would be claimed, that job is skipped, so that it does not keep the others from
// being claimed. If it is damaged elsewhere, ops and claim are isolated.
func (s *Service) applyOrIsolate(ctx context.Context, actor string, ops []Op, r ClaimRequest) (
	[]Result, []projection.Job, error) {
	var skip []event.JobID
	var first *claims.DamagedJobError
	for {
		results, claimed, err := s.tryOnce(ctx, actor, ops, r, skip)
		damaged, ok := errors.AsType[*claims.DamagedJobError](err)
		switch {
		case ok && damaged.Job != "" && len(skip) < maxSkipped && !slices.Contains(skip, damaged.Job):
			skip = append(skip, damaged.Job)
			if first == nil {
				first = damaged
			}
		case err == nil && first != nil && len(claimed) == 0 && len(ops) == 0:
			return nil, nil, first
		case err == nil || len(ops) == 0 || StoreFailed(err):
			return results, claimed, err
		default:
			return s.isolate(ctx, actor, ops, r)
		}
	}
}

// isolate carries out each op in a transaction of its own, and the claim in another, so that one damaged row
// costs no other job its lease.
func (s *Service) isolate(ctx context.Context, actor string, ops []Op, r ClaimRequest) (
	[]Result, []projection.Job, error) {
	results := make([]Result, len(ops))
	for i, op := range ops {
		one, _, err := s.tryOnce(ctx, actor, []Op{op}, ClaimRequest{}, nil)
		switch {
		case StoreFailed(err):
			return nil, nil, err // what has been carried out may be sent again
		case err != nil:
			results[i] = Result{op.Job, err}
		default:
			results[i] = one[0]
		}
	}
	if r.Limit == 0 {
		return results, nil, nil
	}
	_, claimed, err := s.applyOrIsolate(ctx, actor, nil, r)
	if StoreFailed(err) {
		return nil, nil, err
	}
	return results, claimed, nil // the ops are done; the next claim reports what is wrong with this one
}

// tryOnce carries out ops and the claim in one transaction.
func (s *Service) tryOnce(ctx context.Context, actor string, ops []Op, r ClaimRequest, skip []event.JobID) (
	results []Result, claimed []projection.Job, err error) {
	if s.Store == nil {
		return nil, nil, ErrNoStore
	}
	tokens := s.tokensOf(r)
	turn, plan := s.turnOf(actor, ops, r, tokens, skip)
	// The search is begun before the ops and read after them, so that the database has it ready by then; unless
	// an op may queue a job that the claim should find.
	searchFirst := !slices.ContainsFunc(ops, mayQueue)
	err = s.Store.WriteBurst(ctx, plan, func(tx *ledger.Tx) (err error) {
		var search *claims.Search
		results, claimed, turn.Planned = nil, nil, false
		if r.Tokens != nil && r.Limit > 0 { // it may be sent again: see ClaimRequest.Tokens
			mine, err := projection.HeldWith(ctx, tx, r.Worker, tokens)
			if err == nil && len(mine) > 0 {
				claimed = mine
				results, err = applyAll(ctx, tx, actor, ops)
			}
			if err != nil || len(mine) > 0 {
				return err
			}
		}
		searchFirst, err := searchFirst, error(nil)
		if searchFirst && len(ops) > 0 { // the end of a job may queue another
			waits, depsErr := tx.HasDependencies(ctx)
			searchFirst, err = !waits, depsErr
		}
		if err != nil {
			return err
		}
		if r.Limit > 0 && searchFirst {
			if search, err = claims.Seek(ctx, tx, r.want(skip), tx.Now(), r.Limit); err != nil {
				return err
			}
		}
		if results, err = applyAll(ctx, tx, actor, ops); err != nil || r.Limit == 0 {
			return err
		}
		if !searchFirst {
			if search, err = claims.Seek(ctx, tx, r.want(skip), tx.Now(), r.Limit); err != nil {
				return err
			}
		}
		if claimed, err = r.take(ctx, tx, actor, search, tokens); err != nil || len(claimed) == r.Limit {
			return err
		}
		return journal.ResolveNext(ctx, tx, actor, journal.ResolvedAtOnce)
	})
	if errors.Is(err, ledger.ErrUnknown) && r.Limit > 0 {
		// The commit may have been durable: claims with these tokens show that it was. That there are none
		// shows nothing, as the server may still be about to commit.
		mine, readErr := s.heldBy(context.WithoutCancel(ctx), r.Worker, tokens)
		if readErr == nil && len(mine) > 0 && turn.Planned {
			readErr = turn.EndedAt(mine[0].ClaimedAt)
			results = resultsOf(turn)
		}
		if readErr == nil && len(mine) > 0 {
			return results, mine, nil
		}
		err = &UnknownClaimError{tokens, err}
	}
	if err != nil {
		return nil, nil, err
	}
	if turn.Planned {
		return resultsOf(turn), turn.Claimed, nil
	}
	return results, claimed, nil
}

// applyAll carries out ops in tx. Its error is about the whole transaction; the errors of single ops are in
// the results.
func applyAll(ctx context.Context, tx *ledger.Tx, actor string, ops []Op) ([]Result, error) {
	results := make([]Result, len(ops))
	for i, op := range ops {
		j, err := op.Job, CheckCommand(op.Command)
		if err == nil && op.AsSeen {
			err = seenStill(ctx, tx, op.Job)
		}
		if err == nil {
			j, err = apply(ctx, tx, actor, op.Job, op.Command)
		}
		if err != nil && !isAnswer(err) {
			return nil, err
		}
		results[i] = Result{j, err}
	}
	return results, nil
}

// seenStill returns a MovedOnError if seen is out of date.
func seenStill(ctx context.Context, tx *ledger.Tx, seen projection.Job) error {
	j, err := jobWith(ctx, tx, seen.ID)
	if err != nil {
		return err
	}
	return stillAt(j, seen.Seq)
}

// mayQueue reports whether an op may put its job back into its queue.
func mayQueue(op Op) bool {
	switch op.Command.(type) {
	case Succeed, Heartbeat:
		return false
	}
	return true
}

// isAnswer reports whether err is the answer to one op rather than a failure of the transaction.
func isAnswer(err error) bool {
	return isAny(err, ErrLeaseLost, ErrCancelled, ErrConflict, ErrNoJob, ErrInvalid)
}

// StoreFailed reports whether err means that the ledger or the caller was not ready, rather than that what
// the ledger holds is wrong.
func StoreFailed(err error) bool {
	return isAny(err, ledger.ErrBusy, ledger.ErrFull, ledger.ErrIO, ledger.ErrReadOnly, ledger.ErrUnknown,
		ledger.ErrReplaced, ledger.ErrSecondName, ledger.ErrClosed, ledger.ErrNewerSchema, ledger.ErrPooled,
		context.Canceled, context.DeadlineExceeded)
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
