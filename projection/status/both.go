package status

import (
	"context"
	"slices"

	"jobledger/ledger"
	"jobledger/projection"
)

// Both asks what Queues, with Stranded, and Workers, without All, do, and reads what they share once.
type Both struct{ At projection.Moment }

// Read returns the queues and the workers.
func (q Both) Read(ctx context.Context, tx *ledger.Tx) (queues []Queue, workers []Worker, err error) {
	queues, l, err := Queues{At: q.At}.read(ctx, tx)
	if err != nil {
		return nil, nil, err
	}
	if err := l.addStranded(ctx, tx, queues); err != nil {
		return nil, nil, err
	}
	if q.At.IsNow() { // those of long ago are many
		workers, err = Workers{At: q.At}.Read(ctx, tx)
		return queues, workers, err
	}
	all, err := l.all(ctx, tx)
	forgotten := func(w Worker) bool { return w.forgotten(q.At.At) }
	workers = slices.DeleteFunc(slices.Clone(all), forgotten)
	if err == nil {
		err = seenAfterHorizon(ctx, tx, workers)
	}
	return queues, workers, err
}
