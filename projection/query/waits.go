package query

import (
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/follow"
)

// Waits asks how long the jobs that were claimed within a window had been ready for a worker, by queue. Since
// when a job is ready says [follow.Ready].
type Waits struct{ Span }

// Wait is how long the claimed jobs of a queue had been ready.
type Wait struct {
	Queue              string
	Claims             int64
	P50, P90, P99, Max time.Duration // see [Percentile]
}

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

// waitOf is the wait of claims in microseconds, which it sorts.
func waitOf(queue string, micros []int64) Wait {
	slices.Sort(micros)
	at := func(percent int) time.Duration {
		return time.Duration(Percentile(micros, percent)) * time.Microsecond
	}
	return Wait{queue, int64(len(micros)), at(50), at(90), at(99), at(100)}
}
