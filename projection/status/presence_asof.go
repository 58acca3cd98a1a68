package status

import (
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
)

// PresenceAsOf returns the presence with which a copy of the events up to m says the same of each worker
// process at m as Workers does, which also looks at what came later: a process that lived on was seen
// just after m, and one that had fallen silent was not.
func PresenceAsOf(ctx context.Context, tx *ledger.Tx, m projection.Moment) (present []projection.Presence,
	err error) {
	workers, err := Workers{At: m, All: true}.Read(ctx, tx)
	for _, w := range workers {
		seen := m.At.Add(time.Microsecond)
		switch {
		case !w.announced || w.State == Stopped:
			continue
		case w.State == Silent:
			seen = w.alive
		}
		present = append(present, projection.Presence{Worker: w.Worker, SeenAt: seen})
	}
	return present, err
}
