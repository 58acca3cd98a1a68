package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// waitsBack is how long before a moment claims count for how long jobs waited then.
const waitsBack = time.Hour

// maxBetweenActs is how many acts of operators [Between] has at most, the last ones.
const maxBetweenActs = 50

// QueueThen is what a queue was like at a moment.
type QueueThen struct {
	Queued, Held int64
	Claims       int           // within the hour before the moment
	WaitP99      time.Duration // of these claims, from when the job was ready; 0: there were none
}

// QueueBetween is a queue at both ends of a window.
type QueueBetween struct {
	Queue    string
	From, To QueueThen
}

// Between is how queues were at both ends of a window, and what operators did within it, the newest first.
type Between struct {
	Queues []QueueBetween // by name: those with jobs that had not ended, or with claims, at one of the ends
	Acts   Acts
}

// ReadBetween reads it. It costs the jobs that had not ended at both ends, and the events of the hour before
// each, however long the window is.
func ReadBetween(ctx context.Context, tx *ledger.Tx, s Span) (b Between, err error) {
	queues := make(map[string]*QueueBetween)
	for _, end := range []struct {
		at   projection.Moment
		then func(*QueueBetween) *QueueThen
	}{{s.From, func(q *QueueBetween) *QueueThen { return &q.From }},
		{s.To, func(q *QueueBetween) *QueueThen { return &q.To }}} {
		err := readThen(ctx, tx, end.at, func(queue string) *QueueThen {
			if queues[queue] == nil {
				queues[queue] = &QueueBetween{Queue: queue}
			}
			return end.then(queues[queue])
		})
		if err != nil {
			return b, err
		}
	}
	for _, q := range queues {
		b.Queues = append(b.Queues, *q)
	}
	slices.SortFunc(b.Queues, func(a, b QueueBetween) int { return cmp.Compare(a.Queue, b.Queue) })
	if s.To.Pos > s.From.Pos {
		f := ledger.Filter{After: s.From.Pos, Until: s.To.Pos}
		b.Acts, err = OperatorActs(ctx, tx, f, maxBetweenActs)
	}
	return b, err
}

// readThen reads how the queues were at m.
func readThen(ctx context.Context, tx *ledger.Tx, m projection.Moment,
	of func(queue string) *QueueThen) error {
	if m.Pos == 0 {
		return nil
	}
	moment := query.Span{From: m, To: m}
	depth, err := query.Depth{Span: moment, Moments: []time.Time{m.At}}.Read(ctx, tx)
	if err != nil {
		return err
	}
	for _, r := range depth {
		then := of(r.Queue)
		then.Queued, then.Held = r.Queued(), r.Held
	}
	since, err := tx.PosAt(ctx, m.At.Add(-waitsBack))
	if err != nil {
		return err
	}
	moment.From.Pos = min(since, m.Pos)
	waits, err := query.Waits{Span: moment}.Read(ctx, tx)
	for _, w := range waits {
		then := of(w.Queue)
		then.Claims, then.WaitP99 = int(w.Claims), w.P99
	}
	return err
}
