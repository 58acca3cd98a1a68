package status

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// signs are what the events of a worker process say about its life, besides its starts and stops.
type signs struct {
	acted time.Time // its last act up to the moment: a claim, or what it wrote about one
	taken time.Time // the last time up to the moment that the end of a lease lost it a job
	later bool      // it acted after the moment
	lost  bool      // the end of a lease lost it a job after the moment
}

// recentClaims is how many of a process' last claims are searched for its acts. Older claims have ended
// before, or are held.
const recentClaims = `SELECT c.job FROM events c WHERE c.kind = 2 AND c.worker = ?1 AND c.pos <= ?2
    ORDER BY c.at DESC LIMIT 256`

// Both find the events of the last claims by the index claims, and then by (job, seq).
const (
	lastAct = `SELECT coalesce(max(e.at), 0) FROM events e WHERE e.job IN (` + recentClaims + `)
    AND e.worker = ?1 AND e.pos <= ?2 AND e.kind IN (2, 3, 4, 5, 6, 11, 29, 30)`
	lastTaken = `SELECT coalesce(max(e.at), 0) FROM events e WHERE e.job IN (` + recentClaims + `)
    AND e.worker = ?1 AND e.pos <= ?2 AND e.kind = 7
    AND coalesce(CAST(e.data AS TEXT), '') NOT LIKE '%max_runtime%'`
)

// signsOf returns the signs of life of the process with the number n, as of m; with past, what came later
// too.
func signsOf(ctx context.Context, tx *ledger.Tx, n int64, m projection.Moment, past bool) (s signs,
	err error) {
	last := func(query string, until int64) (at time.Time, err error) {
		var micros int64
		err = table.ScanOne(ctx, tx, query, []any{&micros}, n, until)
		return event.FromMicros(micros), err
	}
	until := m.Pos
	if s.acted, err = last(lastAct, until); err != nil {
		return s, err
	}
	if s.taken, err = last(lastTaken, until); err != nil || !past {
		return s, err
	}
	acted, err := last(lastAct, math.MaxInt64)
	if err != nil {
		return s, err
	}
	taken, err := last(lastTaken, math.MaxInt64)
	s.later, s.lost = acted.After(m.At), taken.After(m.At)
	return s, err
}

// LostWorker is a worker process that fell silent without having announced its end.
type LostWorker struct {
	Worker
	Replaced time.Time // the next start of a worker of its name on its host, by which it was gone; zero: none
}

// LostWorkers returns the processes that had started and not stopped at to, and whose last sign of life is
// within from and to and too old for one that lives; the earliest first. Their Jobs are those held at to.
// Its cost grows with the starts of workers, not with the events in between.
func LostWorkers(ctx context.Context, tx *ledger.Tx, from, to projection.Moment) (lost []LostWorker,
	err error) {
	found := make(map[int64]*Worker)
	if err := findPresent(ctx, tx, found); err != nil {
		return nil, err
	}
	if err := addLives(ctx, tx, found, to, true); err != nil {
		return nil, err
	}
	for n, w := range found {
		if !w.announced || w.lives <= 0 || !w.later.IsZero() || w.present.After(to.At) {
			continue
		}
		if w.signs, err = signsOf(ctx, tx, n, to, true); err != nil {
			return nil, err
		}
		jobs, err := heldThen(ctx, tx, n, to)
		if err != nil {
			return nil, err
		}
		w.Jobs = jobs
		w.judge(to.At)
		if w.State == Silent && w.SeenAt.After(from.At) && !w.SeenAt.After(to.At) {
			lost = append(lost, LostWorker{Worker: *w})
		}
	}
	for i := range lost {
		l := &lost[i]
		for _, w := range found {
			same := w.Name == l.Name && w.Host == l.Host && w.Boot != l.Boot
			if same && w.StartedAt.After(l.SeenAt) && (l.Replaced.IsZero() || w.StartedAt.Before(l.Replaced)) {
				l.Replaced = w.StartedAt
			}
		}
	}
	slices.SortFunc(lost, func(a, b LostWorker) int {
		return cmp.Or(a.SeenAt.Compare(b.SeenAt), cmp.Compare(a.Boot, b.Boot))
	})
	return lost, nil
}

const claimsOf = `SELECT DISTINCT r.job FROM (` + recentClaims + `) r`

// heldThen returns the jobs that the process with the number n held at m.
func heldThen(ctx context.Context, tx *ledger.Tx, n int64, m projection.Moment) (held []projection.Job,
	err error) {
	rows, err := tx.Query(ctx, claimsOf, n, m.Pos)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var claimed []int64
	for rows.Next() {
		var job int64
		if err := rows.Scan(&job); err != nil {
			return nil, err
		}
		claimed = append(claimed, job)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	owner, err := tx.WorkerOf(ctx, n)
	if err != nil {
		return nil, err
	}
	jobs, err := projection.JobsAsOf(ctx, tx, claimed, m)
	for _, j := range jobs {
		if j.State.Held() && j.Worker == owner {
			held = append(held, j)
		}
	}
	slices.SortFunc(held, func(a, b projection.Job) int { return cmp.Compare(a.N, b.N) })
	return held, err
}
