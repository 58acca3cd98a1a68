package commands

import (
	"context"
	"errors"
	"fmt"
	"math"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
	"jobledger/projection/inbox"
)

// Apply carries out c on the job with this id and returns the job after it; with a RefusedError too.
//
// Errors: ErrNoJob; RefusedError (ErrLeaseLost, ErrCancelled or ErrConflict) for a token that is not live;
// ConflictError; InvalidError; ledger.ErrUnknown, after which sending the same command again is safe.
func (s *Service) Apply(ctx context.Context, actor string, id event.JobID, c Command) (
	projection.Job, error) {
	return s.ApplyAt(ctx, actor, id, 0, c)
}

// ApplyAt is Apply where the job is at seq, as the caller has seen it. If it has moved on since, nothing
// changes, and the error is a MovedOnError. A seq of 0 is any.
func (s *Service) ApplyAt(ctx context.Context, actor string, id event.JobID, seq int64, c Command) (
	projection.Job, error) {
	if err := CheckActor(actor); err != nil {
		return projection.Job{}, err
	}
	if err := CheckCommand(c); err != nil {
		return projection.Job{}, err
	}
	var j projection.Job
	var refused error
	for again := true; again; {
		err := s.write(ctx, func(tx *ledger.Tx) (err error) {
			refused = nil
			if j, err = jobWith(ctx, tx, id); err != nil {
				return err
			}
			if err := stillAt(j, seq); err != nil {
				return err
			}
			again = false
			if _, ok := c.(Retry); ok { // where many jobs wait for j, no transaction is long
				again, err = journal.ResolveJob(ctx, tx, actor, j, journal.ResolvedBySweeper)
			}
			if again || err != nil {
				return err
			}
			j, err = apply(ctx, tx, actor, j, c)
			if _, ok := errors.AsType[*RefusedError](err); ok {
				refused, err = err, nil // what the refusal has recorded is committed
			}
			return err
		})
		if err != nil {
			return projection.Job{}, err
		}
	}
	return j, refused
}

// jobWith returns the job with this id; ErrNoJob if there is none.
func jobWith(ctx context.Context, tx *ledger.Tx, id event.JobID) (j projection.Job, err error) {
	if CheckText("job", string(id), MaxKey) != nil { // not every database accepts such a parameter
		return j, fmt.Errorf("%w: %.80q", ErrNoJob, id)
	}
	j, ok, err := projection.Get(ctx, tx, id)
	if err == nil && !ok {
		err = inbox.Missing(ctx, tx, id, ErrNoJob)
	}
	return j, err
}

// stillAt returns a MovedOnError unless j is at seq; 0 is any.
func stillAt(j projection.Job, seq int64) error {
	if seq == 0 || j.Seq == seq {
		return nil
	}
	return &MovedOnError{Job: j, Seen: seq}
}

// apply carries out c on j and returns the job after it. j may be out of date, or only an id: the
// compare-and-swap of the row detects that where something is written. If nothing would be, the row is
// read and judged first.
func apply(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c action) (
	projection.Job, error) {
	if j.N != 0 && !needsRow(c) {
		after, err := applyTo(ctx, tx, actor, j, c)
		if err == nil || !mayBeStale(err) {
			return after, err
		}
	}
	fresh, err := jobWith(ctx, tx, j.ID)
	if err != nil {
		return j, err
	}
	if !fresh.Erased {
		fresh.Payload, fresh.Salt = j.Payload, j.Salt
	}
	var after projection.Job
	switch c := c.(type) {
	case Cancel:
		after, err = applyCancel(ctx, tx, actor, fresh, c)
	case Edit:
		after, err = applyEdit(ctx, tx, actor, fresh, c)
	case Unblock:
		after, err = applyUnblock(ctx, tx, actor, fresh, c)
	case ReportStop:
		after, err = applyStop(ctx, tx, actor, fresh, c)
	case Retry:
		lost, _, lostErr := projection.LastLostClaim(ctx, tx, fresh, projection.Now(tx.Now()))
		if lostErr != nil {
			return fresh, lostErr
		}
		c.runsUntil = lost.Until
		if fresh.UniqueWhile != "" && fresh.State.Final() && !fresh.Erased {
			if err := keyTaken(ctx, tx, c, fresh); err != nil {
				return fresh, err
			}
		}
		if _, resolveErr := journal.ResolveJob(ctx, tx, actor, fresh, math.MaxInt32); resolveErr != nil {
			return fresh, resolveErr
		}
		if c.NotDependent && fresh.State == event.CancelledState {
			edges, depsErr := deps.Of(ctx, tx, fresh.N, 1)
			if depsErr != nil {
				return fresh, depsErr
			}
			c.dependent = len(edges) > 0
		}
		after, err = applyTo(ctx, tx, actor, fresh, c)
		if err == nil && c.Now {
			err = journal.AwaitNoMore(ctx, tx, actor, after)
		}
		if at := addTruncated(tx.Now(), c.Delay); err == nil && c.Delay > 0 && at.After(after.RunAt) {
			after, err = applyTo(ctx, tx, actor, after, Reschedule{RunAt: &at, Reason: c.Reason})
		}
	default:
		after, err = applyTo(ctx, tx, actor, fresh, c)
	}
	if errors.Is(err, errNoChange) {
		return fresh, nil
	}
	if c, ok := c.(ownerCommand); ok && errors.Is(err, errTokenNotLive) {
		return fresh, applyStale(ctx, tx, actor, fresh, c)
	}
	return after, err
}

// mayBeStale reports whether err may come from a copy of a job that is out of date. ErrDamaged may: the body
// that is missing may have been erased since.
func mayBeStale(err error) bool {
	return isAny(err, ledger.ErrConflict, errTokenNotLive, errNoChange, ErrConflict, ledger.ErrDamaged)
}

// needsRow reports whether c depends on what the compare-and-swap does not notice: erasing is not a
// transition, so that a copy of the job from before it has the right seq.
func needsRow(c action) bool {
	switch c := c.(type) {
	case Retry, Erase, ReportStop, Unblock, Edit:
		return true
	case Cancel:
		return c.Token != "" // the end of the work is recorded too
	}
	return false
}

// applyTo decides c on j as it is given and records the fact.
func applyTo(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c action) (
	projection.Job, error) {
	if s, ok := c.(Succeed); ok && s.Result != nil && j.Salt == nil && holdsLive(j, s) {
		var err error
		if j.Salt, err = journal.Salt(ctx, tx, j); err != nil {
			return j, err
		}
	}
	f, err := decide(j, c, tx.Now())
	if err != nil {
		return j, err
	}
	f.Actor = actor
	return journal.Record(ctx, tx, f)
}
