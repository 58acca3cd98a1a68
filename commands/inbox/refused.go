package inbox

import (
	"context"
	"math"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/inbox"
)

// RefusedRow is a row that the ledger did not take.
type RefusedRow struct {
	ID    event.JobID // of the job that it would have become
	Job   string      // what was asked for, but for the payload: JSON
	Role  string      // who asked: a user of the server; "" from a file
	Asked time.Time
	At    time.Time // when it was refused
	Why   string
}

// Refused returns the rows that the ledger did not take, those first that were refused first.
func Refused(ctx context.Context, store *ledger.Store) (list []RefusedRow, err error) {
	rows, err := ledger.Read(ctx, store, func(tx *ledger.Tx) ([]inbox.Refused, error) {
		return inbox.AllRefused(ctx, tx, 0, math.MaxInt32)
	})
	for _, r := range rows {
		list = append(list, RefusedRow{event.JobID(r.ID), r.Job, r.Role, r.At(), r.RefusedAt(), r.Why})
	}
	return list, err
}

// Retry has the refused row of a job tried again, and reports whether there was one.
func Retry(ctx context.Context, store *ledger.Store, id event.JobID) (bool, error) {
	changed, err := change(ctx, store, id, inbox.Retry)
	if changed {
		store.NoteInbox()
	}
	return changed, err
}

// Drop removes the refused row of a job for good, and reports whether there was one.
func Drop(ctx context.Context, store *ledger.Store, id event.JobID) (bool, error) {
	return change(ctx, store, id, inbox.Drop)
}

func change(ctx context.Context, store *ledger.Store, id event.JobID,
	fn func(*ledger.Tx, event.JobID) (int64, error)) (changed bool, err error) {
	err = store.Write(ctx, func(tx *ledger.Tx) error {
		n, err := fn(tx, id)
		changed = n > 0
		return err
	})
	return changed, err
}
