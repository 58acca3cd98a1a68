package main

import (
	"context"
	"strings"
	"time"
)

// rawGroupedEngine is what bare SQL on the tables of raw-ledger reaches when turns share transactions: the end
// of a job and the claim of the next are one turn, and each statement has the rows of all turns that wait.
func rawGroupedEngine() Engine {
	e := rawLedgerEngine()
	e.Name = "raw-grouped"
	e.Settings = "the same tables; all turns that wait share a transaction, and each statement has the rows of all"
	e.Phases = []string{}
	e.Times = func(string, int) float64 { return 6 }
	e.Open = func(ctx context.Context, f File) (Queue, error) {
		if f.New {
			q, err := openRawLedger(ctx, f)
			if err != nil {
				return nil, err
			}
			if err := q.Close(); err != nil {
				return nil, err
			}
		}
		b, err := openBare(ctx, f)
		return &rawGrouped{b}, err
	}
	return e
}

type rawGrouped struct{ *bare }

func (q *rawGrouped) Enqueue(ctx context.Context, payload []byte) error {
	return q.EnqueueBatch(ctx, [][]byte{payload})
}

func (q *rawGrouped) EnqueueBatch(_ context.Context, payloads [][]byte) error {
	return q.write(func() error {
		last, err := q.query(`SELECT coalesce(max(n), 0) FROM jobs`)
		if err != nil {
			return err
		}
		first := last[0][0].(int64) + 1
		now := time.Now().UnixMicro()
		jobs, events := make([]any, 0, 3*len(payloads)), make([]any, 0, 3*len(payloads))
		for i, p := range payloads {
			jobs = append(jobs, first+int64(i), 0, p)
			events = append(events, first+int64(i), 0, now)
		}
		if err := q.insert("jobs (n, state, payload)", 3, jobs); err != nil {
			return err
		}
		return q.insert("events (job, kind, at)", 3, events)
	})
}

func (q *rawGrouped) Drain(ctx context.Context, workers int, t *Tally) error {
	return q.drain(ctx, workers, t, func(group []*turn) error {
		now := time.Now().UnixMicro()
		var ended, events []any
		for _, one := range group {
			if one.ended != nil {
				ended = append(ended, one.ended.n)
				events = append(events, one.ended.n, 2, now)
			}
		}
		err := q.inParts(1, ended, func(n int) string {
			return `UPDATE jobs SET state = 2 WHERE n IN (?` + strings.Repeat(",?", n-1) + `)`
		})
		if err != nil {
			return err
		}
		taken, err := q.query(`UPDATE jobs SET state = 1 WHERE n IN (SELECT n FROM jobs
			WHERE state = 0 AND state < 2 ORDER BY n LIMIT ?) RETURNING n, payload`, len(group))
		if err != nil {
			return err
		}
		for i, one := range group {
			if one.next = (bareJob{}); i < len(taken) {
				one.next = bareJob{n: taken[i][0].(int64), payload: taken[i][1].([]byte)}
				events = append(events, one.next.n, 1, now)
			}
		}
		return q.insert("events (job, kind, at)", 3, events)
	})
}
