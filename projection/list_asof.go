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

// asOfPage is how many candidates ListAsOf folds at a time where only folding shows what they were.
const asOfPage = 1000

// ListAsOf returns what List would have returned at m. The rows find the candidates, because queue, tags and
// key of a job never change; jobs that had not ended by then are folded from their events. What f says of
// their ends, errors and owners is compared after that.
func ListAsOf(ctx context.Context, tx *ledger.Tx, f Filter, m Moment) (found []Then, err error) {
	if f.Before == 0 || f.Before > m.Pos {
		f.Before = m.Pos + 1
	}
	if !f.changing() {
		return foldedAsOf(ctx, tx, f, m)
	}
	limit := f.Limit
	f.Limit = asOfPage
	for {
		page, err := foldedAsOf(ctx, tx, f, m)
		if err != nil {
			return nil, err
		}
		jobs := make([]Job, len(page))
		for i, j := range page {
			jobs[i] = j.Job
		}
		exits, err := LastExits(ctx, tx, jobs, m.Pos)
		if err != nil {
			return nil, err
		}
		for _, j := range page {
			if !f.selects(j.Job, exits[j.N]) {
				continue
			}
			if found = append(found, j); len(found) == limit {
				return found, nil
			}
		}
		if len(page) < f.Limit {
			return found, nil
		}
		f.Before = page[len(page)-1].N
	}
}

// foldedAsOf is ListAsOf for what never changes, and states.
func foldedAsOf(ctx context.Context, tx *ledger.Tx, f Filter, m Moment) ([]Then, error) {
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
