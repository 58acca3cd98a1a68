package projection

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Then is a job at a moment of the past, and its state now.
type Then struct {
	Job
	Now event.State
}

// stateThen is the state of job j at a moment. Its arguments are the next and the Pos of the Moment.
const stateThen = `CASE WHEN j.finished_at < ? THEN j.state ELSE
    (SELECT e.to_state FROM events e WHERE e.job = j.n AND e.seq > 0 AND e.pos <= ?
     ORDER BY e.seq DESC LIMIT 1) END`

// ListAsOf returns what List would have returned at m. The rows find the candidates, because queue, tags and
// key of a job never change; jobs that had not ended by then are folded from their events.
func ListAsOf(ctx context.Context, tx *ledger.Tx, f Filter, m Moment) ([]Then, error) {
	if f.Before == 0 || f.Before > m.Pos {
		f.Before = m.Pos + 1
	}
	c := f.conditions()
	c.addStates(stateThen, f.States, m.next, m.Pos)
	rows, err := c.list(ctx, tx, f.Limit)
	if err != nil {
		return nil, err
	}
	var open []int64
	for _, j := range rows {
		if !m.endedBy(j) {
			open = append(open, j.N)
		}
	}
	folded, err := JobsAsOf(ctx, tx, open, m)
	if err != nil {
		return nil, err
	}
	then := make([]Then, len(rows))
	for i, j := range rows {
		then[i] = Then{Job: j, Now: j.State}
		if before, ok := folded[j.N]; ok {
			then[i].Job = before
			then[i].Erased = j.Erased // an erased body cannot be shown
		}
	}
	return then, nil
}
