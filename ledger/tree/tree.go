package tree

import (
	"context"
	"errors"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/proof"
)

// ErrBeyond means that a ledger has fewer events than were asked for.
var ErrBeyond = errors.New("tree: beyond the end of the ledger")

// Tree is the hash tree over the events of a ledger, as one transaction shows it. It is not for concurrent
// use.
type Tree struct {
	tx     *ledger.Tx
	source Source
	size   int64
	stored int64        // how many blocks have a stored hash
	late   []proof.Hash // of the blocks after these, as far as they were needed
	last   lastBlock
}

// lastBlock are the leaves of the block in which the tree ends that was asked for last.
type lastBlock struct {
	from, to int64
	leaves   []proof.Hash
}

// New returns the tree over the events of tx. source gives the leaves; nil means [Events].
func New(ctx context.Context, tx *ledger.Tx, source Source) (*Tree, error) {
	if source == nil {
		source = Events{tx}
	}
	t := &Tree{tx: tx, source: source}
	var err error
	if t.size, err = tx.Tail(ctx); err != nil {
		return nil, err
	}
	t.stored, err = BlockCount(ctx, tx)
	t.stored = min(t.stored, t.size/proof.BlockSize) // others are of no events
	return t, err
}

// OfEvents returns the tree over the events of tx that New does, and takes no stored hash for theirs: every
// root is computed from all events below it.
func OfEvents(ctx context.Context, tx *ledger.Tx, source Source) (*Tree, error) {
	t, err := New(ctx, tx, source)
	if t != nil {
		t.stored = 0
	}
	return t, err
}

// Size returns how many events the tree has: the pos of the last one.
func (t *Tree) Size() int64 { return t.size }

// Sealed returns how many events are in blocks that have a stored hash.
func (t *Tree) Sealed() int64 { return t.stored * proof.BlockSize }

// Root returns the root over the first size events, for any size up to Size; of none it is the hash of
// nothing. It reads the hashes of the blocks and the events behind them: at most 255 where no block is
// missing. Errors: ErrBeyond; ledger.ErrDamaged.
func (t *Tree) Root(ctx context.Context, size int64) (proof.Hash, error) {
	if size < 0 || size > t.size {
		return proof.Hash{}, fmt.Errorf("%w: a tree of %d events, and there are %d", ErrBeyond, size, t.size)
	}
	return proof.NewTree(reader{ctx, t}).Root(size)
}

// Prove returns the entries of a proof that the events at these positions, which ascend, are in the tree over
// the first size events. The entries have been checked. Errors: ErrBeyond for a size above Size, or a
// position that is not below it; ledger.ErrDamaged if an event is not what the hash of its block says.
func (t *Tree) Prove(ctx context.Context, size int64, positions ...int64) ([]proof.Entry, error) {
	if size > t.size {
		return nil, fmt.Errorf("%w: a tree of %d events, and there are %d", ErrBeyond, size, t.size)
	}
	whole := proof.NewTree(reader{ctx, t})
	root, err := whole.Root(size)
	if err != nil {
		return nil, err
	}
	var entries []proof.Entry
	for _, pos := range positions {
		if pos < 1 || pos > size {
			return nil, fmt.Errorf("%w: event %d in a tree of %d events", ErrBeyond, pos, size)
		}
		e := proof.Entry{Index: pos - 1}
		if e.Path, err = whole.Inclusion(size, e.Index); err != nil {
			return nil, err
		}
		err := t.source.Leaves(ctx, pos-1, pos, func(leaf []byte) error {
			e.Leaf = append(e.Leaf, leaf...)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if e.Check(size, root) != nil {
			block := e.Index / proof.BlockSize
			return nil, fmt.Errorf("%w: event %d, or another from %d to %d, is not what was sealed in block %d",
				ledger.ErrDamaged, pos, block*proof.BlockSize+1, min((block+1)*proof.BlockSize, size), block)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Consistency returns the hashes that prove that the tree over the first size events begins with the one over
// the first older events. Errors: ErrBeyond for a size above Size.
func (t *Tree) Consistency(ctx context.Context, size, older int64) ([]proof.Hash, error) {
	if older < 1 || older > size || size > t.size {
		return nil, fmt.Errorf("%w: from %d to %d events, of %d that there are", ErrBeyond, older, size, t.size)
	}
	return proof.NewTree(reader{ctx, t}).Consistency(size, older)
}

// reader is the [proof.Source] of a tree, for the time of one call.
type reader struct {
	ctx context.Context
	*Tree
}

// Blocks is that of [proof.Source].
func (r reader) Blocks(from, to int64) (list []proof.Hash, err error) {
	if from < r.stored {
		if list, err = StoredBlocks(r.ctx, r.tx, from, min(to, r.stored)); err != nil {
			return nil, err
		}
		if missing := min(to, r.stored) - from - int64(len(list)); missing > 0 {
			return nil, fmt.Errorf("%w: %d of the blocks %d to %d are missing", ledger.ErrDamaged, missing, from,
				min(to, r.stored)-1)
		}
	}
	if to <= r.stored {
		return list, nil
	}
	if known := r.stored + int64(len(r.late)); known < to {
		more, err := blocks(r.ctx, r.source, known, to)
		if err != nil {
			return nil, err
		}
		r.late = append(r.late, more...)
	}
	return append(list, r.late[max(from, r.stored)-r.stored:to-r.stored]...), nil
}

// Leaves is that of [proof.Source].
func (r reader) Leaves(from, to int64) ([]proof.Hash, error) {
	if r.last.from == from && r.last.to == to {
		return r.last.leaves, nil
	}
	list, err := hashes(r.ctx, r.source, from, to)
	if err == nil && to-from < proof.BlockSize {
		r.last = lastBlock{from, to, list}
	}
	return list, err
}
