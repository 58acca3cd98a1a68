package query

import (
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
)

// waitsBack is how long before a moment claims count for how long jobs waited then.
const waitsBack = time.Hour

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

// Between asks how the queues were at both ends of a window, and what operators did within it.
type Between struct {
	Span
	Acts int // at most so many acts, the last ones
}

// QueuesBetween is the answer to [Between].
type QueuesBetween struct {
	Queues []QueueBetween // by name: those with jobs that had not ended, or with claims, at one of the ends
	Acts   ActList
}

// Read returns it. It reads the jobs that had not ended at both ends, and the events of the hour before each,
// however long the window is.
func (q Between) Read(ctx context.Context, tx *ledger.Tx) (b QueuesBetween, err error) {
	queues := make(map[string]*QueueBetween)
	for i, at := range []projection.Moment{q.From, q.To} {
		err := readThen(ctx, tx, at, func(queue string) *QueueThen {
			if queues[queue] == nil {
				queues[queue] = &QueueBetween{Queue: queue}
			}
			return []*QueueThen{&queues[queue].From, &queues[queue].To}[i]
		})
		if err != nil {
			return b, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		b.Queues = append(b.Queues, *queues[name])
	}
	b.Acts, err = Acts{Span: Span{From: q.From, To: q.To}, Limit: q.Acts}.Read(ctx, tx)
	return b, err
}

// readThen reads how the queues were at m.
func readThen(ctx context.Context, tx *ledger.Tx, m projection.Moment,
	of func(queue string) *QueueThen) error {
	if m.Pos == 0 {
		return nil
	}
	moment := Span{From: m, To: m}
	depth, err := Depth{Span: moment, Moments: []time.Time{m.At}}.Read(ctx, tx)
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
	waits, err := Waits{Span: moment}.Read(ctx, tx)
	for _, w := range waits {
		then := of(w.Queue)
		then.Claims, then.WaitP99 = int(w.Claims), w.P99
	}
	return err
}
