package claims

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Put is projection.PutRow for every writer but the loader of a whole history: besides the row, it brings up
// to date what claims are made from, which are the lanes and limits in the cache, the starts that count
// against a rate, and the rows of the job's group.
func Put(ctx context.Context, tx *ledger.Tx, old, new projection.Job) error {
	if err := projection.PutRow(ctx, tx, old, new); err != nil {
		return err
	}
	// Only what was written counts: after a conflict the caller may do something else.
	if new.State == event.Queued {
		cacheQueued(tx, new)
	}
	if old.State.Held() != new.State.Held() {
		change := int64(1)
		if old.State.Held() {
			change = -1
		}
		cacheHeld(tx, new, change)
		if new.Limited && change > 0 {
			if err := countStart(ctx, tx, new); err != nil {
				return err
			}
		}
	}
	if new.Group != "" {
		noteGroup(tx, old, new)
	}
	return nil
}
