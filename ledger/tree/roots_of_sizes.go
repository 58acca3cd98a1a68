package tree

import (
	"context"
	"fmt"

	"jobledger/ledger/proof"
)

// rootBlocks is how many hashes of blocks are read at once: 32 kB.
const rootBlocks = 1 << 10

// Roots returns the root over the first events for each of sizes, which ascend. It is Root for many sizes: it
// reads each block once, and for each size the events behind the last whole block, at most 255. Errors: those
// of Root.
func (t *Tree) Roots(ctx context.Context, sizes []int64) (roots []proof.Hash, err error) {
	var whole, part proof.Frontier // the blocks up to a size; with the events behind them
	for _, size := range sizes {
		if size < part.Size() || size > t.size {
			return nil, fmt.Errorf("%w: a tree of %d events after one of %d, of %d that there are", ErrBeyond, size,
				part.Size(), t.size)
		}
		if whole.Size()+proof.BlockSize <= size {
			if err := t.addBlocks(ctx, &whole, size/proof.BlockSize); err != nil {
				return nil, err
			}
			part = whole.Clone()
		}
		leaves, err := hashes(ctx, t.source, part.Size(), size)
		if err != nil {
			return nil, err
		}
		for _, leaf := range leaves {
			part.Add(leaf)
		}
		roots = append(roots, part.Root())
	}
	return roots, nil
}

// addBlocks adds the blocks up to number to to those in f.
func (t *Tree) addBlocks(ctx context.Context, f *proof.Frontier, to int64) error {
	for next := f.Size() / proof.BlockSize; next < to; next = f.Size() / proof.BlockSize {
		list, err := reader{ctx, t}.Blocks(next, min(next+rootBlocks, to))
		if err != nil {
			return err
		}
		for _, block := range list {
			f.AddBlock(block)
		}
	}
	return nil
}
