package query

import (
	"context"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
	"jobledger/projection/internal/queues"
	"jobledger/projection/status"
)

// Waits asks how long the jobs that were claimed within a window had been ready for a worker, by queue. Since
// when a job is ready says [follow.Ready].
type Waits struct{ Span }

// Read returns the waits by queue, the queues by name; those without a claim are left out. It reads the
// transitions of the window once, and of the jobs that began before it what came before.
func (q Waits) Read(ctx context.Context, tx *ledger.Tx) (all []Wait, err error) {
	waits := make(map[string][]int64)
	r := follow.Transitions{Pos: q.From.Pos}
	err = r.Read(ctx, tx, q.To.Pos, func(t *follow.Transition) {
		if t.Kind == event.KindClaimed && t.Wait >= 0 && (q.Queue == "" || t.Queue == q.Queue) {
			waits[t.Queue] = append(waits[t.Queue], t.Wait)
		}
	})
	for _, queue := range slices.Sorted(maps.Keys(waits)) {
		all = append(all, waitOf(queue, waits[queue]))
	}
	return all, err
}

// Causes asks how long jobs waited within a window, and for what: other jobs, their time, a paused queue,
// limits, or a worker. Only the part of a wait that is within the window counts.
type Causes struct {
	Span
	Job int64 // the job's number; 0: all
}

// Caused is how long the jobs of a queue waited for one cause.
type Caused = queues.Caused

// Read returns it by queue, by name, and by cause. It reads the jobs that were open at the beginning of the
// window, and its transitions once.
func (q Causes) Read(ctx context.Context, tx *ledger.Tx) ([]Caused, error) {
	lives, err := status.Lives(ctx, tx)
	if err != nil {
		return nil, err
	}
	c := queues.Causes{From: q.From, To: q.To, Lives: lives}
	return c.Read(ctx, tx, q.Queue, q.Job)
}

// Recovery asks how long the jobs that were taken from a worker within a window waited for their next claim,
// by queue: from the end of the lease, or from when they were taken where that was earlier.
type Recovery struct{ Span }

// Read returns the waits of those that were claimed again, the queues by name. It reads what [Taken] reads.
func (q Recovery) Read(ctx context.Context, tx *ledger.Tx) (all []Wait, err error) {
	taken, err := Taken(q).Read(ctx, tx)
	waits := make(map[string][]int64)
	for _, t := range taken {
		since := t.At
		if t.LeaseUntil.Before(since) {
			since = t.LeaseUntil
		}
		if t.Next.Pos > 0 {
			waits[t.Queue] = append(waits[t.Queue], t.Next.ClaimedAt.Sub(since).Microseconds())
		}
	}
	for _, queue := range slices.Sorted(maps.Keys(waits)) {
		all = append(all, waitOf(queue, waits[queue]))
	}
	return all, err
}
