package status

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/queues"
	"jobledger/projection/internal/table"
)

// lives are few. The index on (job, seq) finds them.
var lives = event.SQL(`SELECT e.pos, e.worker, e.kind, e.at, e.data FROM events e
WHERE e.job IS NULL AND e.seq IS NULL AND e.kind IN ({worker_started}, {worker_stopped}) ORDER BY e.pos`)

// addLives adds what is known of starts and stops at m; with all, including those that have not been found.
func addLives(ctx context.Context, tx *ledger.Tx, found map[int64]*Worker, m projection.Moment,
	all bool) error {
	rows, err := tx.Query(ctx, lives)
	var pos, n, kind, at int64
	var data *string
	return table.Each(rows, err, []any{&pos, &n, &kind, &at, &data}, func() error {
		if found[n] == nil && (!all || pos > m.Pos) {
			return nil
		}
		w, err := workerIn(ctx, tx, found, n)
		if err != nil {
			return err
		}
		if pos > m.Pos {
			w.later = event.FromMicros(at)
			return nil
		}
		if event.Kind(kind) == event.KindWorkerStopped {
			w.lives--
			w.StoppedAt = event.FromMicros(at)
			return nil
		}
		if w.lives++; w.StartedAt.IsZero() {
			w.StartedAt = event.FromMicros(at)
		}
		w.announced = true
		if err := w.serves(data); err != nil {
			return fmt.Errorf("%w: worker %s: %w", ledger.ErrDamaged, w.Name, err)
		}
		return nil
	})
}

// serves adds the queues and labels of one start: a process may have several workers.
func (w *Worker) serves(data *string) error {
	if data == nil {
		return nil
	}
	var started struct{ Queues, Capabilities []string }
	if err := json.Unmarshal([]byte(*data), &started); err != nil {
		return err
	}
	add := func(list *[]string, more []string) {
		*list = append(*list, more...)
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	add(&w.Queues, started.Queues)
	add(&w.Capabilities, started.Capabilities)
	return nil
}

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
