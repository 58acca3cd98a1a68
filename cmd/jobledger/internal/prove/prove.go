package prove

import (
	"context"
	"fmt"
	"slices"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// Proved is a proof, and what it was made with.
type Proved struct {
	Text      []byte
	Positions []int64
	proof.Checkpoint
	// the checkpoint was handed out before; otherwise it was made for this proof, and is not signed
	HandedOut bool
}

// Prove proves that the events at these positions, which ascend, are in the ledger. The checkpoint of the
// proof is the last one that was handed out, so that it can be compared with a copy of that. Where an event
// is behind it, the checkpoint is that of all events. Errors: commands.ErrNotSealing; those of package tree.
func Prove(ctx context.Context, tx *ledger.Tx, positions []int64) (p Proved, err error) {
	s, err := projection.SealingOf(ctx, tx)
	if err != nil {
		return p, err
	}
	if !s.On {
		return p, commands.ErrNotSealing
	}
	p.Positions = positions
	var whole proof.Proof
	last, ok, err := tree.LastHandedOut(ctx, tx)
	if err != nil {
		return p, err
	}
	if p.HandedOut = ok && last.Size >= slices.Max(positions); p.HandedOut {
		whole.Checkpoint = []byte(last.Note)
		p.Checkpoint, err = proof.ParseCheckpoint(whole.Checkpoint)
	} else {
		var h Head
		if h, err = head(ctx, tx); err == nil {
			p.Checkpoint = h.Checkpoint
			whole.Checkpoint, err = h.Sign()
		}
	}
	if err != nil {
		return p, err
	}
	t, err := tree.New(ctx, tx, nil)
	if err != nil {
		return p, err
	}
	if whole.Entries, err = t.Prove(ctx, p.Size, positions...); err != nil {
		return p, err
	}
	if _, err := whole.Check(); err != nil {
		return p, fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	p.Text = whole.Append(nil)
	return p, nil
}
