package projection

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// Then is a job as it was, and its state now.
type Then struct {
	Job
	Now ledger.State
}

// stateThen is the state of job j at a moment: of its next and its Pos, in this order.
const stateThen = `CASE WHEN j.finished_at < ? THEN j.state ELSE
    (SELECT e.to_state FROM events e WHERE e.job = j.n AND e.seq > 0 AND e.pos <= ? ORDER BY e.seq DESC LIMIT 1) END`

// ListAsOf returns what List would have returned at m. Queue, tags and key of a job never change, so the rows find
// the candidates; those that had not ended by then are folded from their events.
func ListAsOf(ctx context.Context, tx *ledger.Tx, f Filter, m Moment) ([]Then, error) {
	states := f.States
	f.States = nil
	if f.Before == 0 || f.Before > m.Pos {
		f.Before = m.Pos + 1
	}
	where, args := f.where()
	if len(states) > 0 {
		where += ` AND ` + stateThen + ` IN (` + marks(len(states)) + `)`
		args = append(args, m.next, m.Pos)
		for _, s := range states {
			args = append(args, int64(s))
		}
	}
	query := `SELECT ` + table.List + ` FROM jobs j` + where + ` ORDER BY j.n DESC`
	if f.Limit > 0 {
		query, args = query+` LIMIT ?`, append(args, f.Limit)
	}
	rows, err := queryJobs(ctx, tx, query, args...)
	if err != nil {
		return nil, err
	}
	var open []int64
	for _, j := range rows {
		if !m.endedBy(j) {
			open = append(open, j.N)
		}
	}
	folded, err := jobsAsOf(ctx, tx, open, m)
	if err != nil {
		return nil, err
	}
	then := make([]Then, len(rows))
	for i, j := range rows {
		then[i] = Then{Job: j, Now: j.State}
		if before, ok := folded[j.N]; ok {
			then[i].Job = before
			then[i].Erased = j.Erased // what is gone is gone then too
		}
	}
	return then, nil
}
