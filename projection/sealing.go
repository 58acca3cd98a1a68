package projection

import (
	"context"
	"fmt"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Sealing says whether the events of a ledger are sealed, and under which name.
type Sealing struct {
	On     bool
	Origin string    // the name of the ledger in its checkpoints
	Key    string    // the public key that checkpoints are signed with; "": none
	Since  time.Time // of the event that said so last
	Pos    int64     // of that event
}

// EvolveSealing returns s after the event e. It is pure, like Evolve.
func EvolveSealing(s Sealing, e event.Event) (Sealing, error) {
	b, ok := e.Body.(*event.Sealing)
	if !ok {
		return s, fmt.Errorf("%w: %T does not concern sealing", ledger.ErrUnknownKind, e.Body)
	}
	return Sealing{On: true, Origin: b.Origin, Key: b.Key, Since: e.At, Pos: e.Pos}, nil
}

// SealingOf returns what the ledger's events say about sealing. It costs one search in an index: the last
// such event says all.
func SealingOf(ctx context.Context, tx *ledger.Tx) (s Sealing, err error) {
	pos, err := tx.LastOf(ctx, event.KindSealing)
	if err != nil || pos == 0 {
		return s, err
	}
	e, found, err := tx.EventAt(ctx, pos)
	if err != nil || !found {
		return s, err
	}
	return EvolveSealing(s, e)
}

// ReadSealing is SealingOf in a snapshot of its own.
func ReadSealing(ctx context.Context, store *ledger.Store) (s Sealing, err error) {
	return ledger.Read(ctx, store, func(tx *ledger.Tx) (Sealing, error) { return SealingOf(ctx, tx) })
}
