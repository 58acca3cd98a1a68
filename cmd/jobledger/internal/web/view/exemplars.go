package view

import (
	"context"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Exemplar is the job that was counted in a bucket last. The zero value is none.
type Exemplar struct {
	Job   event.JobID
	N     int64 // its number
	Value float64
	At    time.Time // of its event

	// Trace is the id of its trace, set by [AddTraces]; "": it has none.
	Trace string
	known bool // Trace
}

// tracesAtOnce is how many jobs AddTraces reads at a time.
const tracesAtOnce = 500

// AddTraces finds the traces of the exemplars of queues: once for each, so that a call reads only the jobs
// that have become one since the last. Only the function given to Refresh may call it. A job that has left
// the ledger has none.
func AddTraces(ctx context.Context, tx *ledger.Tx, queues map[string]*QueueTotals) error {
	var all []*Exemplar
	add := func(h *Histogram) {
		for i := range h.Exemplars {
			if x := &h.Exemplars[i]; x.N != 0 && !x.known {
				all = append(all, x)
			}
		}
	}
	for _, q := range queues {
		add(&q.Waits)
		for _, h := range q.Runs {
			add(h)
		}
	}
	for some := range slices.Chunk(all, tracesAtOnce) {
		ns := words.Of(some, func(x *Exemplar) int64 { return x.N })
		slices.Sort(ns)
		jobs, err := projection.GetMany(ctx, tx, slices.Compact(ns))
		if err != nil {
			return err
		}
		for _, x := range some {
			x.known = true
			if trace := jobs[x.N].Tags[worker.TraceTag]; worker.IsTraceparent(trace) {
				x.Trace = trace[3:35]
			}
		}
	}
	return nil
}
