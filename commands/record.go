package commands

import (
	"context"
	"errors"
	"fmt"

	"jobledger/ledger"
	"jobledger/projection"
)

// carryOut decides c on j, records what was decided, and returns the job as it is then. j may be out of date, or
// nothing but an id: the row's compare-and-swap notices where something is written, and where nothing would be, the
// rules judge the row as it is before anybody is told so.
func carryOut(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Command) (projection.Job, error) {
	if j.N != 0 && !needsRow(c) {
		after, err := attempt(ctx, tx, actor, j, c)
		if !errors.Is(err, ledger.ErrConflict) && !errors.Is(err, errStale) && !errors.Is(err, errNothing) && !errors.Is(err, ErrConflict) &&
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
	case errors.Is(err, errNothing):
		return fresh, nil
	case errors.Is(err, errStale):
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

// fact is one event about to be recorded.
type fact struct {
	actor  string
	job    projection.Job // as it is before; only its id for a new one
	body   ledger.Body
	worker ledger.Worker // of a claim that begins, and of refused; else the live one is named
	token  string        // likewise
	number int           // of refused: the attempt of the token tried
}

// record is the one place through which rows and events change (I6): what the event means, the row, then the
// event (I4). It returns the job as it is then.
func record(ctx context.Context, tx *ledger.Tx, f fact) (projection.Job, error) {
	j := f.job
	e := ledger.Event{Pos: tx.Next(), Job: j.ID, N: j.N, At: tx.At(), Actor: f.actor, Body: f.body}
	switch f.body.Kind() {
	case ledger.KindRefused:
		e.Worker, e.Token, e.Attempt = f.worker, f.token, f.number
	case ledger.KindErased:
	case ledger.KindEnqueued:
		e.N, e.Seq = e.Pos, 1
	case ledger.KindClaimed:
		e.Seq, e.From = j.Seq+1, j.State
		e.Worker, e.Token, e.Attempt = f.worker, f.token, j.Attempt+1
	default:
		e.Seq, e.From = j.Seq+1, j.State
		if j.State.Held() {
			e.Worker, e.Token, e.Attempt = j.Worker, j.Token, j.Attempt
		}
	}
	after, err := projection.Evolve(j, e)
	if err != nil {
		return j, err
	}
	if e.Seq != 0 {
		e.To = after.State
		if after.State == ledger.Queued {
			tx.Announce()
		}
	}
	if err := projection.Put(ctx, tx, j, after); err != nil {
		return j, err
	}
	return after, tx.Append(ctx, e)
}

// answerLate looks up what became of the token's claim, decides, and records a refusal.
func answerLate(ctx context.Context, tx *ledger.Tx, actor string, j projection.Job, c Command) error {
	token, _, _ := credentials(c)
	past, err := pastOf(ctx, tx, j, token, c.name())
	if err != nil {
		return err
	}
	bodies, refusal := DecideLate(j, past, c)
	for _, body := range bodies {
		f := fact{actor: actor, job: j, body: body, token: token}
		if past.Claim != nil {
			f.worker, f.number = past.Claim.Worker, past.Claim.Attempt
		}
		if _, err := record(ctx, tx, f); err != nil {
			return err
		}
	}
	return refusal
}

// pastKinds are all but the heartbeats, of which there may be many.
var pastKinds = []ledger.Kind{ledger.KindClaimed, ledger.KindSucceeded, ledger.KindFailed, ledger.KindReleased,
	ledger.KindReclaimed, ledger.KindCancelled, ledger.KindRefused}

func pastOf(ctx context.Context, tx *ledger.Tx, j projection.Job, token, command string) (past Past, err error) {
	for e, err := range tx.Events(ctx, ledger.Filter{Job: j.N, Kinds: pastKinds}) {
		if err != nil {
			return past, err
		}
		switch {
		case e.Kind() == ledger.KindClaimed && e.Token == token:
			past.Claim, past.Latest = &e, true
		case e.Kind() == ledger.KindClaimed:
			past.Latest = false
		case e.Kind() == ledger.KindRefused && e.Token == token:
			past.Refused = past.Refused || e.Body.(*ledger.Refused).Command == command
		case e.Kind().EndsClaim() && past.Claim != nil && e.Attempt == past.Claim.Attempt:
			past.Ending = &e
		}
	}
	salt, _, _, err := tx.Body(ctx, j.N)
	past.Salt = salt
	return past, err
}
