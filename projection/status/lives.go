package status

import (
	"context"
	"math"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/internal/queues"
)

// Lives returns from when to when each process lived that announced its start, as far as events show: to its
// stop, else to its last act or the end of a lease that it still holds. Presence is not asked, as copies and
// archives have none.
func Lives(ctx context.Context, tx *ledger.Tx) (lives []queues.Life, err error) {
	found, end := make(map[int64]*Worker), projection.Moment{Pos: math.MaxInt64}
	if err := addLives(ctx, tx, found, end, true); err != nil {
		return nil, err
	}
	held, err := projection.AllHeld(ctx, tx)
	if err == nil {
		err = addHeld(ctx, tx, found, held)
	}
	if err != nil {
		return nil, err
	}
	over, err := takenOver(ctx, tx, 0)
	if err != nil {
		return nil, err
	}
	for n, w := range found {
		if !w.announced {
			continue
		}
		ended := w.StoppedAt
		if w.lives > 0 {
			if w.signs, err = signsOf(ctx, tx, n, over[n], end, false); err != nil {
				return nil, err
			}
			ended = latestOf(w.StartedAt, w.signs.acted)
			for _, j := range w.Jobs {
				ended = latestOf(ended, j.LeaseUntil)
			}
		}
		lives = append(lives, queues.Life{Worker: w.Worker, Queues: w.Queues, Capabilities: w.Capabilities,
			Began: w.StartedAt, Ended: ended})
	}
	return lives, nil
}
