package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// wholeWait is for how long a download waits until what has left the ledger is read.
const wholeWait = 25 * time.Second

// errReading means that a whole copy is being made.
var errReading = door.Refusal(http.StatusServiceUnavailable, "busy",
	"a part of what is asked for is in the archive, which is being read: ask again")

// OnWhole has read read a copy of the ledger as if nothing had left it. Where that is not made in time, it is
// for those who ask again.
func (a *API) OnWhole(ctx context.Context, read func(*ledger.Store) error) error {
	waiting, cancel := context.WithTimeout(ctx, wholeWait)
	defer cancel()
	begun := false
	err := a.Whole.Use(waiting, func(store *ledger.Store) error {
		begun = true
		return read(store)
	})
	if !begun && errors.Is(err, context.DeadlineExceeded) {
		return errReading
	}
	return err
}

// mayBeArchived reports whether what a question failed with, err, is that it is about what may have left the
// ledger for the archive, which is known, or about the job id, which has.
func (a *API) mayBeArchived(ctx context.Context, err error, id string) bool {
	switch {
	case a.Whole == nil:
		return false
	case errors.Is(err, projection.ErrArchived):
		return true
	case id == "" || !errors.Is(err, commands.ErrNoJob):
		return false
	}
	if !a.removed(ctx) {
		return false
	}
	_, _, err = archive.History(ctx, a.Store, a.Archive, id)
	return !errors.Is(err, commands.ErrNoJob) // also where a file is missing: the copy says which
}

// removed reports whether anything has left the ledger.
func (a *API) removed(ctx context.Context) bool {
	var horizon int64
	err := a.Store.Read(ctx, func(tx *ledger.Tx) (err error) {
		horizon, err = projection.Horizon(ctx, tx)
		return err
	})
	return err == nil && horizon > 0
}

// archivedQueue is the queue of the job with this whole id, which has left the ledger; "" where no such job
// is found in the archive.
func (a *API) archivedQueue(ctx context.Context, id event.JobID) string {
	if a.Archive == "" || !a.removed(ctx) {
		return ""
	}
	history, _, err := archive.History(ctx, a.Store, a.Archive, string(id))
	if err != nil && !errors.Is(err, commands.ErrNoJob) { // whose job it is cannot be said
		a.Report("archive: %v", err)
	}
	for _, e := range history {
		if b, ok := e.Body.(*event.Enqueued); ok {
			return b.Queue
		}
	}
	return ""
}
