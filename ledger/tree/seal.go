package tree

import (
	"context"
	"fmt"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/failpoint"
)

// SealAll adds the blocks that are missing and a seal of all events, and returns that. If the last seal is of
// these events already, it returns the last one. Error: ledger.ErrDamaged if what is stored is not the hash
// of its events.
func SealAll(ctx context.Context, s *ledger.Store) (seal Seal, err error) {
	_, err = Extend(ctx, s, 0, nil)
	for err == nil {
		err = s.Read(ctx, func(tx *ledger.Tx) error {
			t, err := New(ctx, tx, nil)
			if err == nil {
				seal.Size = t.Size()
				seal.Root, err = t.Root(ctx, seal.Size)
			}
			return err
		})
		if err != nil {
			return seal, err
		}
		failpoint.Hit("rooted")
		done := false
		err = s.Write(ctx, func(tx *ledger.Tx) error {
			done = false
			last, _, err := LastSeal(ctx, tx)
			switch {
			case err != nil:
				return err
			case last.Size > seal.Size && last.Size < tx.Next(): // another was faster, and later events are sealed
				return nil
			case last.Size == seal.Size && last.Root != seal.Root:
				return fmt.Errorf("%w: seal %d of %d events is not that of these events", ledger.ErrDamaged, last.N,
					last.Size)
			case last.Size != seal.Size:
				added, err := AppendSeals(ctx, tx, Seal{Size: seal.Size, Root: seal.Root})
				if err != nil {
					return err
				}
				last = added[0]
				failpoint.Hit("seal")
			}
			done, seal = true, last
			return nil
		})
		if err == nil && done {
			return seal, nil
		}
	}
	return seal, err
}

// SealIn adds a seal of all events in the transaction that recorded the last one. The blocks should exist
// already: events that are in no block are hashed here.
func SealIn(ctx context.Context, tx *ledger.Tx, at time.Time) error {
	t, err := New(ctx, tx, nil)
	if err != nil {
		return err
	}
	root, err := t.Root(ctx, t.Size())
	if err == nil {
		_, err = AppendSeals(ctx, tx, Seal{Size: t.Size(), At: at, Root: root})
	}
	return err
}
