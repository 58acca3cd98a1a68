package projection

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// PutRow writes new over old, the job as it was read: an insert when old is the zero Job, else an update of
// the columns that differ, WHERE seq and lease token are still those of old (I3). It returns
// ledger.ErrConflict if the row has moved on; the writer may notice that only when it sends its buffer, and
// then runs the caller's function again. It writes only the row; Put of package claims also updates the
// tables that claims read.
func PutRow(ctx context.Context, tx *ledger.Tx, old, new Job) error {
	after, err := RowOf(ctx, tx, new)
	if err != nil {
		return err
	}
	if old.N == 0 {
		return tx.Insert(table.New, after[:]...)
	}
	before, err := RowOf(ctx, tx, old)
	if err != nil {
		return err
	}
	var changed uint32
	args := make([]any, 3, table.Width+3)
	args[0], args[1], args[2] = old.N, old.Seq, before[tokenColumn]
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

// tokenColumn is that of the lease token. It is compared too: a failover that lost the last transitions of a
// job may have another claim at the seq that the owner of a lost one knows.
var tokenColumn = slices.Index(table.Columns[:], "lease_token")

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
	l, _ := updates.LoadOrStore(changed,
		ledger.NewCompareAndSwap("jobs", []string{"n", "seq", "lease_token"}, table.Types, names...))
	return l.(*ledger.BulkStmt)
}
