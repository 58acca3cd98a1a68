package history

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// transition is an event that moved a job to another state.
type transition struct {
	from, to event.State // from 0: it is new
	at       time.Time
}

// transitions reads the transitions but heartbeats; withQueue those of one queue.
const (
	transitions = `SELECT e.job, e.kind, e.from_state, e.to_state, e.at FROM events e WHERE`
	withQueue   = `SELECT e.job, e.kind, e.from_state, e.to_state, e.at FROM events e CROSS JOIN events q
WHERE q.pos = e.job AND q.data ->> 'queue' = ? AND`
	within = ` e.pos > ? AND e.pos <= ? AND e.to_state > 0 AND e.kind <> 3 ORDER BY e.pos`
)

// eachTransition calls fn for each transition within s, in order.
func eachTransition(ctx context.Context, tx *ledger.Tx, s Span, fn func(transition)) error {
	query, args := transitions, []any{s.From.Pos, s.To.Pos}
	if s.Queue != "" {
		query, args = withQueue, append([]any{s.Queue}, args...)
	}
	damaged := 0
	err := tx.Each(ctx, func(row []driver.Value) bool {
		var m transition
		var numbers [5]int64
		for i := range numbers {
			var ok bool
			if numbers[i], ok = row[i].(int64); !ok && row[i] != nil {
				damaged++
				return true
			}
		}
		m.at = event.FromMicros(numbers[4])
		m.from, m.to = event.State(numbers[2]), event.State(numbers[3])
		fn(m)
		return true
	}, query+within, args...)
	if err == nil && damaged > 0 {
		err = fmt.Errorf("%w: events after %d have no known job, kind or state: %d of them", ledger.ErrDamaged,
			s.From.Pos, damaged)
	}
	return err
}
