package status

import (
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// Service says who serves the jobs of one queue, version and set of labels.
type Service struct {
	Fitting     []Worker // present workers of the queue that may take them
	Serving     []Worker // present workers of the queue that may not
	Gone        []Worker // workers of the queue that stopped or are silent, the latest sign of life first
	Unannounced bool     // a process that never announced itself claimed from the queue in the last hour
}

// Served reports whether the jobs are taken: by a present worker that fits or, where no worker of the queue
// is present, a process that never announced itself.
func (s Service) Served() bool {
	return len(s.Fitting) > 0 || len(s.Serving) == 0 && s.Unannounced
}

// Workforce is every worker process that the ledger knows, as of one time.
type Workforce struct {
	workers     []Worker
	unannounced map[string]bool // by queue
}

var claimsByUnannounced = event.SQL(`SELECT DISTINCT j.queue FROM events e JOIN workers w ON w.n = e.worker
JOIN jobs j ON j.n = e.job
WHERE e.pos > ?1 AND e.pos <= ?2 AND e.kind = {claimed}
    AND w.boot NOT IN (SELECT a.boot FROM events s JOIN workers a ON a.n = s.worker
    WHERE s.job IS NULL AND s.seq IS NULL AND s.kind = {worker_started} AND s.pos <= ?2)`)

// workforce returns the worker processes as of l. It reads the claims of the hour before.
func (l *look) workforce(ctx context.Context, tx *ledger.Tx) (f Workforce, err error) {
	if f.workers, err = l.all(ctx, tx); err != nil {
		return f, err
	}
	err = f.addUnannounced(ctx, tx, l.at)
	return f, err
}

// addUnannounced finds the queues from which processes claimed in the hour before m without having announced
// themselves by then.
func (f *Workforce) addUnannounced(ctx context.Context, tx *ledger.Tx, m projection.Moment) error {
	hourAgo, err := tx.PosAt(ctx, m.At.Add(-time.Hour))
	if err != nil {
		return err
	}
	f.unannounced = make(map[string]bool)
	rows, err := tx.Query(ctx, claimsByUnannounced, hourAgo, m.Pos)
	var queue int64
	return table.Each(rows, err, []any{&queue}, func() error {
		name, err := tx.NameOf(ctx, queue)
		if err != nil {
			return err
		}
		f.unannounced[name] = true
		return nil
	})
}

// Present returns the workers that are there: working or idle.
func (f Workforce) Present() (present []Worker) {
	for _, w := range f.workers {
		if w.State == Working || w.State == Idle {
			present = append(present, w)
		}
	}
	return present
}

// ServiceOf returns who serves the jobs of this queue, version and labels.
func (f Workforce) ServiceOf(queue, version string, requires []string) Service {
	s := Service{Unannounced: f.unannounced[queue]}
	for _, w := range f.workers {
		if !slices.Contains(w.Queues, queue) {
			continue
		}
		fits, _ := projection.Fits(projection.Job{Version: version, Requires: requires}, w.Version, w.Capabilities)
		switch {
		case w.State != Working && w.State != Idle:
			s.Gone = append(s.Gone, w)
		case fits:
			s.Fitting = append(s.Fitting, w)
		default:
			s.Serving = append(s.Serving, w)
		}
	}
	slices.SortStableFunc(s.Gone, func(a, b Worker) int { return b.SeenAt.Compare(a.SeenAt) })
	return s
}
