package commands

import (
	"context"
	"errors"
	"fmt"

	"jobledger/ledger"
	"jobledger/projection"
)

// Apply carries out c on the job with this id and returns the job as it is then; with a RefusedError too.
//
// Errors: ErrNoJob; RefusedError (ErrLeaseLost, ErrCancelled or ErrConflict) for a token that is not live;
// ConflictError; InvalidError; ledger.ErrUnknown, after which sending the same command again is safe.
func (s *Service) Apply(ctx context.Context, actor string, id ledger.JobID, c Command) (projection.Job, error) {
	if err := CheckActor(actor); err != nil {
		return projection.Job{}, err
	}
	if err := check(c); err != nil {
		return projection.Job{}, err
	}
	if checkText("job", string(id), MaxKey) != nil { // which not every database can be asked for
		return projection.Job{}, fmt.Errorf("%w: %.80q", ErrNoJob, id)
	}
	var j projection.Job
	var refused error
	err := s.Store.Write(ctx, func(tx *ledger.Tx) error {
		refused = nil
		var ok bool
		var err error
		if j, ok, err = projection.Get(ctx, tx, id); err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: %s", ErrNoJob, id)
		}
		j, err = carryOut(ctx, tx, actor, j, c)
		return keepRefusal(err, &refused)
	})
	if err != nil {
		return projection.Job{}, err
	}
	return j, refused
}

// keepRefusal lets the transaction commit what a refusal has recorded: the error is told afterwards.
func keepRefusal(err error, refused *error) error {
	var r *RefusedError
	if errors.As(err, &r) {
		*refused = err
		return nil
	}
	return err
}

// carryOut decides c on j, records what was decided, and returns the job as it is then. j may be out of date, or
// nothing but an id: the row's compare-and-swap notices where something is written, and where nothing would be, the
// rules judge the row as it is before anybody is told so.
func carryOut(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Command) (projection.Job, error) {
	if j.N != 0 && !needsRow(c) {
		after, err := attempt(ctx, tx, actor, j, c)
		if !errors.Is(err, ledger.ErrConflict) && !errors.Is(err, errTokenNotLive) && !errors.Is(err, errNoChange) && !errors.Is(err, ErrConflict) &&
			!errors.Is(err, ledger.ErrDamaged) { // what it misses may have been erased since
			return after, err
		}
	}
	fresh, ok, err := projection.Get(ctx, tx, j.ID)
	if err != nil {
		return j, err
	}
	if !ok {
		return j, fmt.Errorf("%w: %s", ErrNoJob, j.ID)
	}
	if !fresh.Erased {
		fresh.Payload, fresh.Salt = j.Payload, j.Salt
	}
	after, err := attempt(ctx, tx, actor, fresh, c)
	switch {
	case errors.Is(err, errNoChange):
		return fresh, nil
	case errors.Is(err, errTokenNotLive):
		return fresh, answerLate(ctx, tx, actor, fresh, c)
	}
	return after, err
}

// needsRow reports whether c depends on what no seq tells: erasing is no transition, so that the compare-and-swap does
// not notice a copy of the job from before it.
func needsRow(c Command) bool {
	switch c.(type) {
	case Retry, Erase:
		return true
	}
	return false
}

// attempt decides c on j as it is given and records the result.
func attempt(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Command) (projection.Job, error) {
	bodies, err := Decide(j, c, tx.Now())
	if err != nil {
		return j, err
	}
	for _, body := range bodies {
		f := fact{actor: actor, job: j, body: body}
		if claim, ok := c.(Claim); ok {
			f.worker, f.token = claim.Worker, claim.Token
		}
		succeed, ok := c.(Succeed)
		hasResult := ok && succeed.Result != nil
		if hasResult {
			if err := digestResult(ctx, tx, &f.job, succeed.Result, body.(*ledger.Succeeded)); err != nil {
				return j, err
			}
		}
		if b, ok := body.(*ledger.Erased); ok {
			if b.Bodies, b.Bytes, err = tx.EraseBodies(ctx, j.N); err != nil {
				return j, err
			}
		}
		pos := tx.Next()
		if j, err = record(ctx, tx, f); err != nil {
			return j, err
		}
		if hasResult {
			j.Result = succeed.Result
			if err := tx.PutBody(pos, nil, succeed.Result); err != nil {
				return j, err
			}
		}
	}
	return j, nil
}

// digestResult says in the event what the result is. Without the job's salt at hand it is read.
func digestResult(ctx context.Context, tx *ledger.Tx, j *projection.Job, result []byte, b *ledger.Succeeded) error {
	if j.Salt == nil {
		salt, _, ok, err := tx.Body(ctx, j.N)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: job %s has no payload row", ledger.ErrDamaged, j.ID)
		}
		j.Salt = salt
	}
	b.ResultSHA256 = ledger.Digest(j.Salt, result)
	return nil
}
