package simtest

import (
	"context"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// seals reports whether sealing is on in this history: in one of four, without sabotage.
func (s *sim) seals() bool { return s.broken == "" && s.seed%4 == 0 }

// beginSealed fills the ledger until the first block is nearly whole, and switches sealing on, so that
// sweepers add blocks while anything may fail.
func (o *oracle) beginSealed() error {
	const before = proof.BlockSize - 6
	ctx := context.Background()
	err := o.store.Write(ctx, func(tx *ledger.Tx) error {
		q := projection.Queue{}
		for tx.Next() <= before {
			e := event.Event{Pos: tx.Next(), At: tx.At(), Actor: "cli:sim", Body: &event.QueuePaused{Queue: "filler"}}
			if q.Paused {
				e.Body = &event.QueueResumed{Queue: "filler"}
			}
			var err error
			if q, err = projection.EvolveQueue(q, e); err != nil {
				return err
			}
			if err := projection.PutQueue(ctx, tx, q); err != nil {
				return err
			}
			if err := tx.Append(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		_, err = (&commands.Service{Store: o.store}).StartSealing(ctx, "cli:sim", "jobledger/sim", "", "")
	}
	return err
}

// countBlocks counts the blocks of the history, which verify has compared with the events.
func (o *oracle) countBlocks(tx *ledger.Tx) error {
	n, err := tree.BlockCount(context.Background(), tx)
	o.sim.counts["blocks"] += int(n)
	return err
}
