package prove

import (
	"cmp"
	"context"
	"errors"
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
	Later     int // events that the checkpoint does not cover, and the proof leaves out
	proof.Checkpoint
	// the checkpoint was handed out before, or is one that was kept; otherwise it was made for this proof, and
	// is not signed
	HandedOut bool
}

// ErrNotCovered means that no event is covered by a checkpoint that was kept and that holds.
var ErrNotCovered = errors.New("no event is covered by what was kept")

// Prove proves that the events at these positions, which ascend, are in the ledger. Of the checkpoints kept
// that hold, the proof has the smallest one that covers the last event, or else the largest one with the
// events up to it. Without any it is the last one that was handed out, so that it can be compared with a copy
// of that, or where an event is behind it, one of all events. Errors: commands.ErrNotSealing; ErrForked if
// none of kept holds; ErrNotCovered; those of package tree.
func Prove(ctx context.Context, tx *ledger.Tx, positions []int64, kept ...[]byte) (p Proved, err error) {
	text, out, err := chosen(ctx, tx, slices.Max(positions), kept)
	if err != nil {
		return p, err
	}
	whole := proof.Proof{Checkpoint: text}
	if p.Checkpoint, err = proof.ParseCheckpoint(text); err != nil {
		return p, err
	}
	p.HandedOut, p.Positions = out, positions
	if len(kept) > 0 {
		n, _ := slices.BinarySearch(positions, p.Size+1)
		p.Positions, p.Later = positions[:n], len(positions)-n
	}
	t, err := tree.New(ctx, tx, nil)
	switch {
	case err != nil:
		return p, err
	case slices.Max(positions) > t.Size():
		return p, fmt.Errorf("%w: event %d of %d", tree.ErrBeyond, slices.Max(positions), t.Size())
	case len(p.Positions) == 0:
		return p, fmt.Errorf("%w: the newest that holds is of %d events, and the first to be proven is event %d",
			ErrNotCovered, p.Size, positions[0])
	}
	if whole.Entries, err = t.Prove(ctx, p.Size, p.Positions...); err != nil {
		return p, err
	}
	if _, err := whole.Check(); err != nil {
		return p, fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	p.Text = whole.Append(nil)
	return p, nil
}

// chosen returns the text of a checkpoint that covers the events up to pos: one of kept, or where there are
// none, one that was handed out, or one of all events; out is false for the last. Where none of kept covers
// them, it is the largest that holds.
func chosen(ctx context.Context, tx *ledger.Tx, pos int64, kept [][]byte) (text []byte, out bool, err error) {
	if s, err := projection.SealingOf(ctx, tx); err != nil || !s.On {
		return nil, false, cmp.Or(err, commands.ErrNotSealing)
	}
	if len(kept) > 0 {
		text, err = best(ctx, tx, pos, kept)
		return text, true, err
	}
	if last, ok, err := tree.LastHandedOut(ctx, tx); err != nil || ok && last.Size >= pos {
		return []byte(last.Note), true, err
	}
	h, err := head(ctx, tx)
	if err == nil {
		text, err = h.Sign()
	}
	return text, false, err
}

// best returns the smallest of texts that holds and covers the events up to pos, or else the largest that
// holds.
func best(ctx context.Context, tx *ledger.Tx, pos int64, texts [][]byte) (text []byte, err error) {
	var list []proof.Checkpoint
	for _, text := range texts {
		c, err := proof.ParseCheckpoint(text)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	a, err := CompareAll(ctx, tx, list, ByBlocks)
	if err != nil {
		return nil, err
	}
	size := int64(-1)
	for i, one := range a.Compared {
		if n := list[i].Size; one.Same() && (size < pos && n > size || n >= pos && n < size) {
			text, size = texts[i], n
		}
	}
	if text == nil {
		err = fmt.Errorf("%w: none of the %d holds; %s", ErrForked, len(list), a.Compared[0])
	}
	return text, err
}

// ProveConsistency proves that the ledger that had the checkpoint with the text older has gone on to the one
// with the text newer; nil is the last one handed out, if that is larger, or else a checkpoint of all events.
// Errors: ErrForked if one of them does not hold; ErrNotLarger; those of Prove.
func ProveConsistency(ctx context.Context, tx *ledger.Tx, older, newer []byte) (p Proved, err error) {
	first, err := proof.ParseCheckpoint(older)
	if err != nil {
		return p, err
	}
	if p.HandedOut = true; newer == nil {
		newer, p.HandedOut, err = chosen(ctx, tx, first.Size+1, nil)
	}
	if err == nil {
		p.Checkpoint, err = proof.ParseCheckpoint(newer)
	}
	if err != nil {
		return p, err
	}
	a, err := CompareAll(ctx, tx, []proof.Checkpoint{first, p.Checkpoint}, ByBlocks)
	if err != nil {
		return p, err
	}
	for _, one := range a.Compared {
		if !one.Same() {
			return p, fmt.Errorf("%w: %s", ErrForked, one)
		}
	}
	if first.Size < 1 || first.Size >= p.Size {
		return p, fmt.Errorf("%w: they are of %d and of %d events", ErrNotLarger, first.Size, p.Size)
	}
	t, err := tree.New(ctx, tx, nil)
	if err != nil {
		return p, err
	}
	c := proof.Consistency{Old: older, New: newer}
	if c.Path, err = t.Consistency(ctx, p.Size, first.Size); err != nil {
		return p, err
	}
	if _, _, err := c.Check(); err != nil {
		return p, fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	p.Text = c.Append(nil)
	return p, nil
}

// ErrNotLarger means that the newer one of two checkpoints is not larger, or that the older one covers no
// events.
var ErrNotLarger = errors.New(
	"the second checkpoint must have more events than the first, which has at least one")
