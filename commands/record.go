package commands

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection"
)

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
