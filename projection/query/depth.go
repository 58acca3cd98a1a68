package query

import (
	"cmp"
	"context"
	"math"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/queues"
	"jobledger/projection/keyframe"
)

// Depth asks how many jobs of the queues had not ended: at some moments of a window, or at the end of each of
// its steps.
type Depth struct {
	Span
	Moments []time.Time   // in order, within the window; nil: see Step
	Step    time.Duration // whole seconds; the steps begin at whole multiples of it since 1970; 0: a minute
	Merged  bool          // all queues are one, whose name is ""
}

// DepthRow is how many jobs of a queue had not ended at a moment, or at the end of the step that begins then.
// Blocked jobs are not counted.
type DepthRow = queues.Row

// Peaks asks for the most jobs that each queue had within a window.
type Peaks struct{ Span }

// Peak is the most jobs of a queue within the window, and when there were first so many.
type Peak = queues.Peak

// Read returns the depth. At moments it is that of every queue that had jobs then or has changed in the
// window. By steps it is from the first step in which a job changed its state to the last; if none did, the
// depth at the end of the window of the queues that have jobs. It reads the jobs that were open at the
// beginning, and the transitions of the window once; for moments that are far apart, the keyframe before each
// one instead.
func (q Depth) Read(ctx context.Context, tx *ledger.Tx) (rows []DepthRow, err error) {
	if q.Moments != nil && q.To.Pos-q.From.Pos > int64(len(q.Moments))*keyframe.Every {
		if near, err := keyframe.Near(ctx, tx, q.From.Pos); err != nil || near != nil {
			return q.byMoments(ctx, tx)
		}
	}
	fold := queues.NewDepth(q.Queue, q.Merged)
	if err := fold.Begin(ctx, tx, q.From); err != nil {
		return nil, err
	}
	if q.Moments != nil {
		return q.byEvents(ctx, tx, fold)
	}
	if err := fold.AddQueues(ctx, tx, q.From); err != nil {
		return nil, err
	}
	return q.bySteps(ctx, tx, fold)
}

// Read returns the peaks of the queues that had jobs, by name. It reads the jobs that were open at the
// beginning, and the transitions of the window once.
func (q Peaks) Read(ctx context.Context, tx *ledger.Tx) (peaks []Peak, err error) {
	fold := queues.NewDepth(q.Queue, false)
	if err = fold.Begin(ctx, tx, q.From); err == nil {
		err = fold.Follow(ctx, tx, q.From.Pos, q.To.Pos, func(int64) {})
	}
	return fold.Peaks(), err
}

// byMoments reads the jobs that had not ended at each moment.
func (q Depth) byMoments(ctx context.Context, tx *ledger.Tx) (rows []DepthRow, err error) {
	for _, at := range q.Moments {
		m := q.To
		if at.Before(q.To.At) {
			if m, err = projection.AtTime(ctx, tx, at); err != nil {
				return nil, err
			}
		}
		fold := queues.NewDepth(q.Queue, q.Merged)
		if err := fold.Begin(ctx, tx, m); err != nil {
			return nil, err
		}
		rows = append(rows, fold.Rows(at)...)
	}
	return rows, nil
}

// byEvents goes along the transitions from moment to moment.
func (q Depth) byEvents(ctx context.Context, tx *ledger.Tx, fold *queues.Depth) (rows []DepthRow, err error) {
	next := 0
	until := func(at int64) { // adds the moments before at
		for ; next < len(q.Moments) && event.Micros(q.Moments[next]) < at; next++ {
			fold.Ripen(event.Micros(q.Moments[next]))
			rows = append(rows, fold.Rows(q.Moments[next])...)
		}
	}
	err = fold.Follow(ctx, tx, q.From.Pos, q.To.Pos, until)
	if err == nil {
		until(math.MaxInt64)
	}
	return rows, err
}

// bySteps goes along the transitions from step to step. The queues are those of the whole window.
func (q Depth) bySteps(ctx context.Context, tx *ledger.Tx, fold *queues.Depth) (rows []DepthRow, err error) {
	step := int64(cmp.Or(q.Step, time.Minute) / time.Microsecond)
	begin, changed := int64(0), false // of the step that is under way
	end := func() {
		fold.Ripen(begin + step)
		rows = append(rows, fold.Rows(event.FromMicros(begin))...)
	}
	err = fold.Follow(ctx, tx, q.From.Pos, q.To.Pos, func(at int64) {
		if !changed {
			begin, changed = at/step*step, true
		}
		for ; begin+step <= at; begin += step {
			end()
		}
	})
	if err != nil {
		return nil, err
	}
	if changed {
		end()
		return filled(rows, fold.Names()), nil
	}
	begin = event.Micros(q.To.At) / step * step
	fold.Ripen(event.Micros(q.To.At))
	for _, r := range fold.Rows(event.FromMicros(begin)) {
		if r.Queued()+r.Held > 0 {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// filled adds to each moment of rows the queues that came later, with nothing in them.
func filled(rows []DepthRow, names []string) (all []DepthRow) {
	for len(rows) > 0 {
		at := rows[0].At
		for _, name := range names {
			if len(rows) > 0 && rows[0].At.Equal(at) && rows[0].Queue == name {
				all, rows = append(all, rows[0]), rows[1:]
			} else {
				all = append(all, DepthRow{At: at, Queue: name})
			}
		}
	}
	return all
}
