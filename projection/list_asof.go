package projection

import (
	"context"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
	"jobledger/projection/keyframe"
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

// asOfPage is how many candidates List and ListAsOf read at a time where not all of them need match.
const asOfPage = 1000

// ListAsOf returns what List would have returned at m. The rows find the candidates, because queue, tags and
// key of a job never change; jobs that had not ended by then are folded from their events. The conditions of
// f on their ends, errors and owners are checked after that.
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
		onHost, err := claimedOn(ctx, tx, f.Host, jobs, m.Pos)
		if err != nil {
			return nil, err
		}
		failed, err := f.withFailures(ctx, tx, jobs, m.Pos)
		if err != nil {
			return nil, err
		}
		for _, j := range page {
			if !f.selects(j.Job, exits[j.N], onHost[j.N]) || failed != nil && !failed[j.N] {
				continue
			}
			if has, err := f.payloadMatches(ctx, tx, j.Job); err != nil {
				return nil, err
			} else if !has {
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

// rowsAsOf returns the rows of the jobs that f selects at m by what never changes, and states. Where f asks
// only for jobs that had not ended, it reads those, if a keyframe says which they were.
func (f Filter) rowsAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (rows []Job, err error) {
	c := f.conditions()
	f.addEvents(&c, m.Pos)
	c.addStates(stateThen, f.States, m.next, m.Pos)
	if len(f.States) == 0 || slices.ContainsFunc(f.States, event.State.Final) {
		return c.list(ctx, tx, f.Limit)
	}
	frame, err := keyframe.Near(ctx, tx, m.Pos)
	if err != nil {
		return nil, err
	}
	if frame == nil {
		return c.list(ctx, tx, f.Limit)
	}
	open := frame.Open()
	if !slices.Contains(f.States, event.Queued) && !slices.Contains(f.States, event.Blocked) {
		open = frame.Held()
	}
	slices.Reverse(open)
	for chunk := range table.Chunks(open) {
		among := conditions{slices.Clone(c.terms), slices.Clone(c.args)}
		among.add(`j.n IN (`+table.Placeholders(len(chunk))+`)`, chunk...)
		left := 0
		if f.Limit > 0 {
			left = f.Limit - len(rows)
		}
		found, err := among.list(ctx, tx, left)
		if err != nil {
			return nil, err
		}
		if rows = append(rows, found...); len(rows) == f.Limit && f.Limit > 0 {
			break
		}
	}
	return rows, nil
}

// foldedAsOf is ListAsOf for what never changes, and states.
func foldedAsOf(ctx context.Context, tx *ledger.Tx, f Filter, m Moment) ([]Then, error) {
	rows, err := f.rowsAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	folded, err := m.openOf(ctx, tx, slices.Values(rows))
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
