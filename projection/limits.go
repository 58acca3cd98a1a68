package projection

import (
	"context"
	"slices"

	"jobledger/ledger"
	"jobledger/projection/group"
	"jobledger/projection/limit"
)

// PutLimit brings the limits of a queue from before, which may be the zero Limit, to l, also for the groups
// that wait. It invalidates the cache of claims, which has the old ones.
func PutLimit(ctx context.Context, tx *ledger.Tx, before, l limit.Limit) error {
	tx.Cache().Invalidate()
	if err := limit.Put(ctx, tx, before, l); err != nil {
		return err
	}
	live, err := limit.CountLive(ctx, tx, l.Queue)
	if err != nil {
		return err
	}
	var full []string
	for name, n := range live {
		if l.GroupFull(name, n) {
			full = append(full, name)
		}
	}
	slices.Sort(full)
	var next map[string]int64
	if before.HasGroupRates() || l.HasGroupRates() {
		if next, err = limit.KeepUsed(ctx, tx, before, l); err != nil {
			return err
		}
	}
	return group.Limit(ctx, tx, l.Queue, full, next)
}
