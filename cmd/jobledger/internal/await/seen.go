package await

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// SeenEnd is the end of a ledger as a reader has seen it. The zero value has seen nothing.
type SeenEnd struct {
	Pos  int64
	Last *event.Event // at Pos; nil: not known
}

// Holds reports whether the ledger, whose last event is at tail, still has what was seen. Events that were
// archived and removed count as present.
func (e SeenEnd) Holds(ctx context.Context, tx *ledger.Tx, tail int64) (bool, error) {
	if tail < e.Pos || e.Last == nil {
		return tail >= e.Pos, nil
	}
	now, found, err := tx.EventAt(ctx, e.Pos)
	return !found || IsSame(now, *e.Last), err
}

// Move takes in that everything up to pos was seen.
func (e *SeenEnd) Move(ctx context.Context, tx *ledger.Tx, pos int64) error {
	if pos == e.Pos && e.Last != nil {
		return nil
	}
	last, found, err := tx.EventAt(ctx, pos)
	if err != nil {
		return err
	}
	if e.Pos, e.Last = pos, nil; found {
		e.Last = &last
	}
	return nil
}

// IsSame reports whether a and b, which have the same position, are the same event of one ledger.
func IsSame(a, b event.Event) bool {
	return a.At.Equal(b.At) && a.Kind() == b.Kind() && a.Job == b.Job && a.Seq == b.Seq && a.Actor == b.Actor
}
