package query

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
	"jobledger/projection/status"
)

// SilentWorker is a process that fell silent, and what became of the jobs that it held.
type SilentWorker struct {
	status.LostWorker
	Taken int64 // jobs that were taken from it within the window or later
	Holds int64 // jobs that it still holds
}

// Silent asks which worker processes had started and not stopped, gave their last sign of life within a
// window, and did nothing since, as far as anything shows up to now; and which jobs they lost.
type Silent struct {
	From, To projection.Moment
	Worker   string // only the worker with this name, or the process with this boot; "": all
}

// Read returns them, the earliest first. It reads the starts of workers, the jobs that are held now, and the
// claims that were taken back since From.
func (q Silent) Read(ctx context.Context, tx *ledger.Tx) (silent []SilentWorker, err error) {
	lost, err := status.LostWorkers(ctx, tx, q.From, q.To)
	for _, w := range lost {
		if q.Worker == "" || q.Worker == w.Name || q.Worker == w.Boot {
			silent = append(silent, SilentWorker{LostWorker: w})
		}
	}
	if err != nil || len(silent) == 0 {
		return nil, err
	}
	taken, err := takenSince(ctx, tx, q.From)
	if err != nil {
		return nil, err
	}
	held, err := projection.AllHeld(ctx, tx)
	if err != nil {
		return nil, err
	}
	holds := make(map[string]int64)
	for _, j := range held {
		holds[j.Worker.Boot]++
	}
	for i := range silent {
		w := &silent[i]
		w.Taken, w.Holds = taken[w.Boot], holds[w.Boot]
	}
	return silent, nil
}

// takenAfter reads the index lost_claims.
var takenAfter = event.SQL(`SELECT e.worker, count(*) FROM events e
WHERE e.kind IN ({reclaimed}, {cancelled}) AND e.attempt IS NOT NULL AND e.at >= ? AND e.pos > ?
    AND e.kind = {reclaimed} AND e.worker IS NOT NULL GROUP BY e.worker`)

// takenSince counts the claims that were taken back after m, by the boot of their process, which has several
// numbers if its version changed.
func takenSince(ctx context.Context, tx *ledger.Tx, m projection.Moment) (taken map[string]int64, err error) {
	rows, err := tx.Query(ctx, takenAfter, event.Micros(m.At), m.Pos)
	taken = make(map[string]int64)
	var worker, jobs int64
	err = table.Each(rows, err, []any{&worker, &jobs}, func() error {
		w, err := tx.WorkerOf(ctx, worker)
		if err != nil {
			return err
		}
		taken[w.Boot] += jobs
		return nil
	})
	return taken, err
}
