package projection

import (
	"context"
	"fmt"
	"sync"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Put writes new over old, the job as it was read: an insert when old is the zero Job, else an update of the
// columns that differ, WHERE seq is still that of old (I3). It returns ledger.ErrConflict if the row has
// moved on; the writer may notice that only when it sends its buffer, and then runs the caller's function
// again. A queued job is added to the cache of claims.
func Put(ctx context.Context, tx *ledger.Tx, old, new Job) error {
	if err := PutRow(ctx, tx, old, new); err != nil {
		return err
	}
	// Only what was written counts: after a conflict the caller may do something else.
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

// PutRow is Put for a loader of a whole history, which writes the rows of the groups at its end.
func PutRow(ctx context.Context, tx *ledger.Tx, old, new Job) error {
	after, err := RowOf(ctx, tx, new)
	if err != nil {
		return err
	}
	if new.State == event.Queued {
		cacheQueued(tx, new)
	}
	if old.N == 0 {
		return tx.Insert(table.New, after[:]...)
	}
	before, err := RowOf(ctx, tx, old)
	if err != nil {
		return err
	}
	var changed uint32
	args := make([]any, 2, table.Width+2)
	args[0], args[1] = old.N, old.Seq
	for i := range after {
		if before[i] != after[i] {
			changed |= 1 << i
			args = append(args, after[i])
		}
	}
	if changed == 0 {
		return nil
	}
	if err := tx.Put(updateJob(changed), args...); err != nil {
		return fmt.Errorf("put job %s over seq %d: %w", old.ID, old.Seq, err)
	}
	return nil
}

// updates holds the statement for each set of changed columns; there are some twenty in practice.
var updates sync.Map

func updateJob(changed uint32) *ledger.BulkStmt {
	if l, ok := updates.Load(changed); ok {
		return l.(*ledger.BulkStmt)
	}
	var names []string
	for i, name := range table.Columns {
		if changed&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	l, _ := updates.LoadOrStore(changed, ledger.NewCompareAndSwap("jobs", "n", "seq", table.Types, names...))
	return l.(*ledger.BulkStmt)
}
