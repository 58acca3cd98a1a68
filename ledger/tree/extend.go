package tree

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/ledger/failpoint"
	"jobledger/ledger/proof"
)

// stepBlocks bounds how many blocks are added in one step, and so for how long it holds a snapshot: 65,536
// events.
const stepBlocks = 256

// Extend adds the hashes of the blocks that are missing, up to the last whole block that ends at or before
// the event upTo; 0 is the last event. It returns how many it added. It works in steps: each reads up to
// 65,536 events in a snapshot and then writes their hashes in a short transaction. Several processes may do
// it at once. source gives the leaves; nil means [Events]. Errors: ledger.ErrDamaged if what is stored is not
// the hash of its events, or covers events that are missing.
func Extend(ctx context.Context, s *ledger.Store, upTo int64, source func(*ledger.Tx) Source) (added int64,
	err error) {
	if source == nil {
		source = func(tx *ledger.Tx) Source { return Events{tx} }
	}
	for {
		n, more, err := step(ctx, s, upTo, stepBlocks, source)
		added += n
		if err != nil || !more {
			return added, err
		}
	}
}

// Step is one step of Extend, of so many events at most and of a block at least. It reports whether more
// blocks are missing.
func Step(ctx context.Context, s *ledger.Store, events int64, source func(*ledger.Tx) Source) (more bool,
	err error) {
	if source == nil {
		source = func(tx *ledger.Tx) Source { return Events{tx} }
	}
	_, more, err = step(ctx, s, 0, max(events/proof.BlockSize, 1), source)
	return more, err
}

// step adds up to most of the next blocks, and reports whether there are more.
func step(ctx context.Context, s *ledger.Store, upTo, most int64, source func(*ledger.Tx) Source) (
	added int64,
	more bool, err error) {
	var from, to, whole int64
	var hashes []proof.Hash
	err = s.Read(ctx, func(tx *ledger.Tx) error {
		tail, err := tx.Tail(ctx)
		if err != nil {
			return err
		}
		if from, err = BlockCount(ctx, tx); err != nil {
			return err
		}
		if from > tail/proof.BlockSize {
			return fmt.Errorf("%w: the hash tree has %d blocks, and there are %d events", ledger.ErrDamaged, from,
				tail)
		}
		if upTo > 0 {
			tail = min(tail, upTo)
		}
		whole = tail / proof.BlockSize
		if to = min(whole, from+most); from >= to {
			return nil
		}
		hashes, err = blocks(ctx, source(tx), from, to)
		return err
	})
	if err != nil || len(hashes) == 0 {
		return 0, false, err
	}
	failpoint.Hit("hashed")
	err = s.Write(ctx, func(tx *ledger.Tx) error { return AppendBlocks(ctx, tx, from, hashes) })
	if err != nil {
		return 0, false, err
	}
	failpoint.Hit("sealed")
	return to - from, to < whole, nil
}
