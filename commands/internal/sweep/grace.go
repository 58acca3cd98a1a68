package sweep

import (
	"context"
	"fmt"
	"time"

	"jobledger/commands/internal/check"
	"jobledger/ledger"
	"jobledger/projection"
)

// sighting is an expired lease as a Sweeper first saw it.
type sighting struct {
	token      string
	leaseUntil time.Time
	first      time.Time // with the monotonic reading
	grace      time.Duration
}

// maxExpired bounds how many expired leases are read at once.
const maxExpired = 10_000

// nextBatch reads the expired leases, remembers them, and returns a batch of those whose grace period is
// over.
func (w *Sweeper) nextBatch(ctx context.Context, o *Options, report *Report, bad map[int64]error) (
	batch []projection.Lease, err error) {
	var expired []projection.Lease
	err = o.Store.Peek(ctx, func(tx *ledger.Tx) error {
		expired, err = projection.Expired(ctx, tx, tx.Now(), maxExpired)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sweep: %w", err)
	}
	now, seen := time.Now(), make(map[int64]sighting, len(expired))
	report.Expired, report.Waiting, report.Wait = len(expired), 0, 0
	for _, l := range expired {
		s, known := w.seen[l.N]
		if !known || s.token != l.Token || !s.leaseUntil.Equal(l.Until) {
			s = sighting{l.Token, l.Until, now, o.grace(l)}
		}
		seen[l.N] = s
		switch left := s.grace - now.Sub(s.first); {
		case bad[l.N] != nil:
		case left > 0:
			report.Waiting++
			report.Wait = max(report.Wait, left)
		case len(batch) < o.Batch:
			batch = append(batch, l)
		}
	}
	w.seen = seen
	return batch, nil
}

func (o *Options) grace(l projection.Lease) time.Duration {
	if o.Grace != nil {
		return *o.Grace
	}
	lease := l.Until.Sub(l.HeartbeatAt)
	if lease < check.MinLease { // cut short by a max runtime, or the clock ran back: the real lease is unknown
		lease = check.DefaultLease
	}
	return lease * 2 / 3
}
