package prove

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// State is what shows at a moment whether a ledger still is what it was.
type State struct {
	projection.Sealing
	Size     int64 // how many events there are
	Unsealed int64 // of them, those after the last block that has a hash
	// Head is the checkpoint of all events; nil: sealing is off, or it would take long because many events are
	// not sealed.
	Head *Head

	Seals, HandedOut int64      // how many there are; the second are checkpoints
	Last             *tree.Seal // nil: there is none
	LastHandedOut    *tree.Seal // nil: none was
	Compared         *Compared  // the ledger with the LastHandedOut; nil: none was, or there is no Head
}

// hashAtOnce is how many events after the last block are hashed for a State: what a minute brings, after
// which a sweeper adds their blocks.
const hashAtOnce = 50_000

// StateOf returns the evidence about the ledger of tx: sealing, seals and checkpoints. It changes nothing.
// Its Head is what [NextHead] returns. Errors: those of package tree; ledger.ErrDamaged for a seal that
// cannot be read.
func StateOf(ctx context.Context, tx *ledger.Tx) (s State, err error) {
	if s.Sealing, err = projection.SealingOf(ctx, tx); err != nil {
		return s, err
	}
	if s.Seals, s.HandedOut, err = tree.CountSeals(ctx, tx); err != nil {
		return s, err
	}
	for _, one := range []struct {
		read func(context.Context, *ledger.Tx) (tree.Seal, bool, error)
		into **tree.Seal
	}{{tree.LastSeal, &s.Last}, {tree.LastHandedOut, &s.LastHandedOut}} {
		seal, ok, err := one.read(ctx, tx)
		if err != nil {
			return s, err
		}
		if ok {
			*one.into = &seal
		}
	}
	t, err := tree.New(ctx, tx, nil)
	if err != nil {
		return s, err
	}
	s.Size, s.Unsealed = t.Size(), t.Size()-t.Sealed()
	if !s.On || s.Unsealed > hashAtOnce {
		return s, nil
	}
	h, err := head(ctx, tx)
	if err != nil {
		return s, err
	}
	s.Head = &h
	if s.LastHandedOut == nil {
		return s, nil
	}
	c, err := proof.ParseCheckpoint([]byte(s.LastHandedOut.Note))
	if err != nil {
		return s, fmt.Errorf("%w: seal %d: %w", ledger.ErrDamaged, s.LastHandedOut.N, err)
	}
	compared, err := Compare(ctx, tx, c)
	if err == nil {
		s.Compared = &compared
	}
	return s, err
}
