package audit

import (
	"context"
	"encoding/json"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// CommonPrefix returns the pos up to which two ledgers have the same events; 0 if they share none. It
// compares few of them, because two histories that share an event share all before it.
func CommonPrefix(ctx context.Context, a, b *ledger.Tx) (int64, error) {
	tailA, err := a.Tail(ctx)
	if err != nil {
		return 0, err
	}
	tailB, err := b.Tail(ctx)
	if err != nil {
		return 0, err
	}
	same, differs := int64(0), min(tailA, tailB)+1
	// It begins at the end, because usually one history is the beginning of the other.
	for pos := differs - 1; differs-same > 1; pos = same + (differs-same)/2 {
		inA, err := eventText(ctx, a, pos)
		if err != nil {
			return 0, err
		}
		inB, err := eventText(ctx, b, pos)
		if err != nil {
			return 0, err
		}
		if inA == inB {
			same = pos
		} else {
			differs = pos
		}
	}
	return same, nil
}

// eventText returns the event at pos in its public form; "" if there is none.
func eventText(ctx context.Context, tx *ledger.Tx, pos int64) (string, error) {
	e, found, err := tx.EventAt(ctx, pos)
	if err != nil || !found {
		return "", err
	}
	text, err := json.Marshal(e)
	return string(text), err
}

// Lost counts what a ledger would lose if it ended at an earlier event.
type Lost struct {
	Events   int64
	Since    time.Time     // the at of the first of them
	Enqueued int64         // jobs that would be gone
	Ended    int64         // jobs that would remain and have ended since then: they would be open again
	Erased   []event.JobID // jobs whose erased payload and results would be back
}

var (
	enqueuedAfter = event.SQL(`SELECT count(*) FROM events WHERE pos > ? AND kind = {enqueued}`)
	endedAfter    = event.SQL(`SELECT count(DISTINCT job) FROM events
WHERE pos > ?1 AND job <= ?1 AND to_state BETWEEN {state:succeeded} AND {state:cancelled}`)
)

// LostAfter counts what the events after pos hold.
func LostAfter(ctx context.Context, tx *ledger.Tx, pos int64) (l Lost, err error) {
	tail, err := tx.Tail(ctx)
	if err != nil || tail <= pos {
		return l, err
	}
	l.Events = tail - pos
	first, _, err := tx.OneEvent(ctx, ledger.Filter{After: pos})
	if err != nil {
		return l, err
	}
	l.Since = first.At
	if err := table.ScanOne(ctx, tx, enqueuedAfter, []any{&l.Enqueued}, pos); err != nil {
		return l, err
	}
	if err := table.ScanOne(ctx, tx, endedAfter, []any{&l.Ended}, pos); err != nil {
		return l, err
	}
	for e, err := range tx.Events(ctx, ledger.Filter{After: pos, Kinds: []event.Kind{event.KindErased}}) {
		if err != nil {
			return l, err
		}
		if e.N <= pos {
			l.Erased = append(l.Erased, e.Job)
		}
	}
	return l, nil
}
