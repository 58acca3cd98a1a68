package projection

import (
	"context"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
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

// rowsAsOf returns the rows of the jobs that f selects at m. Where f asks only for jobs that had not ended,
// it reads those, if a keyframe says which they were.
func (f Filter) rowsAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (rows []Job, err error) {
	c := f.conditions()
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
	if !slices.Contains(f.States, event.Queued) {
		open = frame.Held()
	}
	slices.Reverse(open)
	for chunk := range chunksOf(open) {
		among := conditions{slices.Clone(c.terms), slices.Clone(c.args)}
		among.add(`j.n IN (`+placeholders(len(chunk))+`)`, chunk...)
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

// ListAsOf returns what List would have returned at m. The rows find the candidates, because queue, tags and
// key of a job never change; jobs that had not ended by then are folded from their events.
func ListAsOf(ctx context.Context, tx *ledger.Tx, f Filter, m Moment) ([]Then, error) {
	if f.Before == 0 || f.Before > m.Pos {
		f.Before = m.Pos + 1
	}
	rows, err := f.rowsAsOf(ctx, tx, m)
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
