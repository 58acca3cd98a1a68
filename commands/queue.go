package commands

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection"
)

// Pause stops claims from a queue; changed is false if it was paused already, and then there is no event.
func (s *Service) Pause(ctx context.Context, actor, queue, reason string) (changed bool, err error) {
	return s.setPaused(ctx, actor, queue, true, &ledger.QueuePaused{Queue: queue, Reason: reason}, reason)
}

// Resume lets a queue give jobs again; changed is false if it was not paused, and then there is no event.
func (s *Service) Resume(ctx context.Context, actor, queue, reason string) (changed bool, err error) {
	return s.setPaused(ctx, actor, queue, false, &ledger.QueueResumed{Queue: queue, Reason: reason}, reason)
}

func (s *Service) setPaused(ctx context.Context, actor, queue string, paused bool, body ledger.Body, reason string) (changed bool, err error) {
	if err := CheckQueue(queue); err != nil {
		return false, err
	}
	if err := checkText("reason", reason, MaxReason); err != nil {
		return false, err
	}
	if err := CheckActor(actor); err != nil {
		return false, err
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		changed = false
		q, err := projection.GetQueue(ctx, tx, queue)
		if err != nil || q.Paused == paused {
			return err
		}
		e := ledger.Event{Pos: tx.Next(), At: tx.At(), Actor: actor, Body: body}
		if q, err = projection.EvolveQueue(q, e); err != nil {
			return err
		}
		if err := projection.PutQueue(ctx, tx, q); err != nil {
			return err
		}
		changed = true
		if !paused {
			tx.Announce()
		}
		return tx.Append(ctx, e)
	})
	return changed && err == nil, err
}
