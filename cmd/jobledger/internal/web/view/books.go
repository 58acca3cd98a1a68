package view

import (
	"context"
	"errors"

	"jobledger/cmd/jobledger/internal/prove"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Books is what is known of a ledger as a whole: whether its history is unchanged, and which events are about
// all of it.
type Books struct {
	Last      event.Event // its Pos is 0 where there is none
	State     prove.State
	Unclear   error // why the State could not be read whole: the ledger is damaged; nil: it was
	Restores  Happened
	Rebuilds  Happened
	Imports   Happened
	Erased    int64              // jobs whose payload and result were erased
	Segments  int64              // ranges of events that are in a file of the archive
	InArchive int64              // events in them
	Removed   projection.Removal // what has left the ledger
}

// Happened is how often something happened, and the last time.
type Happened struct {
	Count int64
	Last  *event.Event // nil: never
}

func (h *Happened) add(e *event.Event) { h.Count, h.Last = h.Count+1, e }

// bookKinds are the events that concern the whole ledger, or are counted in its books.
var bookKinds = []event.Kind{event.KindRebuilt, event.KindRestored, event.KindImported, event.KindArchived,
	event.KindErased, event.KindRemoved}

// ReadBooks reads them. It costs the events of these kinds, which are few, and the hashes of all blocks.
func ReadBooks(ctx context.Context, tx *ledger.Tx) (b Books, err error) {
	if b.Last, _, err = tx.OneEvent(ctx, ledger.Filter{Last: true}); err != nil {
		return b, err
	}
	erased := make(map[event.JobID]bool)
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: bookKinds}) {
		if err != nil {
			return b, err
		}
		switch body := e.Body.(type) {
		case *event.Rebuilt:
			b.Rebuilds.add(&e)
		case *event.Restored:
			b.Restores.add(&e)
		case *event.Imported:
			b.Imports.add(&e)
		case *event.Erased:
			erased[e.Job] = true
		case *event.Removed:
			if body.Erased != "" {
				erased[body.Erased] = true
			}
		case *event.Archived:
			b.Segments++
			b.InArchive += body.Hi - body.Lo
		}
	}
	b.Erased = int64(len(erased))
	if b.Removed, err = projection.Removed(ctx, tx); err != nil {
		return b, err
	}
	b.State, err = prove.StateOf(ctx, tx)
	if errors.Is(err, ledger.ErrDamaged) {
		b.Unclear, err = err, nil
	}
	return b, err
}
