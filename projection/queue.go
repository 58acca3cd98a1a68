package projection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Queue is the state of a queue, derived from its events.
type Queue struct {
	Name   string
	Paused bool
	Since  time.Time // of the last pause or resume; zero: never
	Actor  string    // of the last pause or resume
	Reason string    // of the last pause or resume
}

// EvolveQueue returns q after the event e. It is pure, like Evolve.
func EvolveQueue(q Queue, e event.Event) (Queue, error) {
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		if q.Paused {
			return q, fmt.Errorf("%w: queue %s paused twice", ErrIllegal, b.Queue)
		}
		return Queue{Name: b.Queue, Paused: true, Since: e.At, Actor: e.Actor, Reason: b.Reason}, nil
	case *event.QueueResumed:
		if !q.Paused {
			return q, fmt.Errorf("%w: queue %s resumed while it is not paused", ErrIllegal, b.Queue)
		}
		return Queue{Name: b.Queue, Paused: false, Since: e.At, Actor: e.Actor, Reason: b.Reason}, nil
	}
	return q, fmt.Errorf("%w: %T does not concern a queue", ledger.ErrUnknownKind, e.Body)
}

var putQueue = ledger.NewUpsert("queues", "queue", ledger.ColumnTypes{"reason": ledger.TextColumn},
	"queue", "paused", "since", "actor", "reason")

// PutQueue makes the row of q's queue equal q. It invalidates the cache of claims: a pause concerns many
// lanes.
func PutQueue(ctx context.Context, tx *ledger.Tx, q Queue) error {
	tx.Cache().Invalidate()
	name, err := tx.Name(ctx, q.Name)
	if err != nil {
		return err
	}
	actor, err := tx.Name(ctx, q.Actor)
	if err != nil {
		return err
	}
	paused := int64(0)
	if q.Paused {
		paused = 1
	}
	return tx.Put(putQueue, name, paused, event.Micros(q.Since), actor, table.Text(q.Reason))
}

const queueColumns = `SELECT n.name, q.paused, q.since, a.name, coalesce(q.reason, '')
FROM queues q JOIN names n ON n.n = q.queue JOIN names a ON a.n = q.actor`

// GetQueue returns the queue with this name. One that was never paused has no row and is the zero Queue with
// its name.
func GetQueue(ctx context.Context, tx *ledger.Tx, name string) (Queue, error) {
	found, err := queues(ctx, tx, queueColumns+` WHERE q.queue = (SELECT n FROM names WHERE name = ?)`, name)
	if err != nil || len(found) == 0 {
		return Queue{Name: name}, err
	}
	return found[0], nil
}

// Queues returns every queue that was ever paused or resumed, by name.
func Queues(ctx context.Context, tx *ledger.Tx) ([]Queue, error) {
	return queues(ctx, tx, queueColumns+` ORDER BY n.name`)
}

func queues(ctx context.Context, tx *ledger.Tx, query string, args ...any) (found []Queue, err error) {
	rows, err := tx.QueryState(ctx, query, args...)
	var q Queue
	var since int64
	err = table.Each(rows, err, []any{&q.Name, &q.Paused, &since, &q.Actor, &q.Reason}, func() error {
		q.Since = event.FromMicros(since)
		found = append(found, q)
		return nil
	})
	return found, err
}

const queuesOfJobs = `SELECT DISTINCT queue FROM jobs WHERE n <= ?`

// QueuesWithJobs returns the names of the queues that had jobs by the event pos, in order. It reads the rows
// of the jobs up to there.
func QueuesWithJobs(ctx context.Context, tx *ledger.Tx, pos int64) (names []string, err error) {
	numbers, err := table.Numbers(ctx, tx, queuesOfJobs, pos)
	if err != nil {
		return nil, err
	}
	for _, n := range numbers {
		name, err := tx.NameOf(ctx, n)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// QueuesAsOf returns every queue that had been paused by m, by name. It folds the events of queues, which are
// few.
func QueuesAsOf(ctx context.Context, tx *ledger.Tx, m Moment) (found []Queue, err error) {
	if m.Pos == 0 {
		return nil, nil
	}
	byName := make(map[string]Queue)
	f := ledger.Filter{Kinds: []event.Kind{event.KindQueuePaused, event.KindQueueResumed}, Until: m.Pos}
	for e, err := range tx.Events(ctx, f) {
		if err != nil {
			return nil, err
		}
		name := queueOf(e)
		q, err := EvolveQueue(byName[name], e)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Pos, err)
		}
		byName[name] = q
	}
	for _, q := range byName {
		found = append(found, q)
	}
	slices.SortFunc(found, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// queueOf returns the queue that e pauses or resumes.
func queueOf(e event.Event) string {
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		return b.Queue
	case *event.QueueResumed:
		return b.Queue
	}
	return ""
}
