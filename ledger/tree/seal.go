package tree

import (
	"context"
	"fmt"

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
				if err := AppendSeal(ctx, tx, seal); err != nil {
					return err
				}
				failpoint.Hit("seal")
			}
			done = true
			seal.N, seal.At = max(last.N, 1), tx.At()
			if last.Size == seal.Size {
				seal = last
			}
			return nil
		})
		if err == nil && done {
			return seal, nil
		}
	}
	return seal, err
}
