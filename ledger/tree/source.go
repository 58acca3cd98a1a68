package tree

import (
	"context"

	"jobledger/ledger"
	"jobledger/ledger/proof"
)

// Source gives the texts of leaves. Leaf number i is the event at pos i+1.
type Source interface {
	// Leaves calls fn with the texts of the leaves from, …, to-1, in order, until it fails. A text is valid
	// during the call. A leaf that is not there is an error.
	Leaves(ctx context.Context, from, to int64, fn func(leaf []byte) error) error
}

// Events is the source of the events that the ledger's database holds.
type Events struct{ Tx *ledger.Tx }

// Leaves is that of [Source]. What has left the ledger comes from its archive, if the Store knows it. Errors:
// ledger.ErrDamaged if an event is missing.
func (s Events) Leaves(ctx context.Context, from, to int64, fn func(leaf []byte) error) error {
	next := from + 1
	if from >= to {
		return nil
	}
	var leaf []byte
	for batch, err := range s.Tx.Complete(ctx, ledger.Scan{After: from, Until: to}) {
		if err != nil {
			return err
		}
		for i := range batch {
			if pos := batch[i].Pos; pos != next {
				if err := s.Tx.ArchivedLeaves(ctx, next-1, pos-1, fn); err != nil {
					return err
				}
				next = pos
			}
			leaf = batch[i].AppendLeaf(leaf[:0])
			if err := fn(leaf); err != nil {
				return err
			}
			next++
		}
	}
	if next <= to {
		return s.Tx.ArchivedLeaves(ctx, next-1, to, fn)
	}
	return nil
}

// hashes returns the hashes of the leaves from, …, to-1.
func hashes(ctx context.Context, s Source, from, to int64) ([]proof.Hash, error) {
	list := make([]proof.Hash, 0, to-from)
	err := s.Leaves(ctx, from, to, func(leaf []byte) error {
		list = append(list, proof.LeafHash(leaf))
		return nil
	})
	return list, err
}

// blocks returns the hashes of the whole blocks from, …, to-1, computed from their leaves.
func blocks(ctx context.Context, s Source, from, to int64) (list []proof.Hash, err error) {
	leaves := make([]proof.Hash, 0, proof.BlockSize)
	err = s.Leaves(ctx, from*proof.BlockSize, to*proof.BlockSize, func(leaf []byte) error {
		if leaves = append(leaves, proof.LeafHash(leaf)); len(leaves) < proof.BlockSize {
			return nil
		}
		h, err := proof.BlockHash(leaves)
		list, leaves = append(list, h), leaves[:0]
		return err
	})
	return list, err
}
