package commands

import (
	"cmp"
	"context"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Pause stops claims from a queue. If it was paused already, changed is false and no event is recorded.
func (s *Service) Pause(ctx context.Context, actor, queue, reason string) (changed bool, err error) {
	return s.setPaused(ctx, actor, queue, true, reason)
}

// Resume permits claims from a queue again. If it was not paused, changed is false and no event is recorded.
func (s *Service) Resume(ctx context.Context, actor, queue, reason string) (changed bool, err error) {
	return s.setPaused(ctx, actor, queue, false, reason)
}

func (s *Service) setPaused(ctx context.Context, actor, queue string, paused bool, reason string) (
	changed bool, err error) {
	return s.changeQueue(ctx, actor, queue, reason, func(tx *ledger.Tx) (bool, error) {
		return setPaused(ctx, tx, actor, queue, paused, reason)
	})
}

// changeQueue writes what an operator says of a queue. fn reports whether it changed anything.
func (s *Service) changeQueue(ctx context.Context, actor, queue, reason string,
	fn func(*ledger.Tx) (bool, error)) (changed bool, err error) {
	err = cmp.Or(CheckQueue(queue), CheckText("reason", reason, MaxReason), CheckActor(actor))
	if err != nil {
		return false, err
	}
	err = s.write(ctx, func(tx *ledger.Tx) (err error) {
		if s.If != nil {
			err = s.If(ctx, tx)
		}
		if err == nil {
			changed, err = fn(tx)
		}
		return err
	})
	return changed && err == nil, err
}

func setPaused(ctx context.Context, tx *ledger.Tx, actor, queue string, paused bool, reason string) (
	changed bool, err error) {
	q, err := projection.GetQueue(ctx, tx, queue)
	if err != nil || q.Paused == paused {
		return false, err
	}
	f := journal.Fact{Actor: actor, Queue: q, Body: &event.QueueResumed{Queue: q.Name, Reason: reason}}
	if paused {
		f.Body = &event.QueuePaused{Queue: q.Name, Reason: reason}
	}
	_, err = journal.Record(ctx, tx, f)
	return err == nil, err
}

// PauseIn pauses a queue in the caller's transaction; changed is false if it was paused already.
func PauseIn(ctx context.Context, tx *ledger.Tx, actor, queue, reason string) (changed bool, err error) {
	return setPaused(ctx, tx, actor, queue, true, reason)
}
