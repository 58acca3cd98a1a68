package archive

import (
	"context"
	"fmt"

	"jobledger/commands"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/past"
)

// Erase erases what the ledger still has of an archived job whose id is, or begins with, prefix: its payloads
// and results, where these were kept, and the salt with which the payload of a job with a key could be
// guessed at. An event records it. changed is false if there was nothing to erase. What is in the files
// stays: it has no payload or result, only their digests. Errors: those of History; commands.ErrConflict for
// a job that is in the ledger.
func Erase(ctx context.Context, s *commands.Service, actor, dir, prefix, reason string) (what event.Removed,
	changed bool, err error) {
	if err := commands.CheckActor(actor); err != nil {
		return what, false, err
	}
	if err := commands.CheckText("reason", reason, commands.MaxReason); err != nil {
		return what, false, err
	}
	events, _, err := History(ctx, s.Store, dir, prefix)
	if err != nil {
		return what, false, err
	}
	var positions []int64
	var first event.Enqueued
	for _, e := range events {
		switch b := e.Body.(type) {
		case *event.Enqueued:
			what.Erased, first = e.Job, *b
			positions = append(positions, e.Pos)
		case *event.Replaced, *event.Succeeded:
			positions = append(positions, e.Pos)
		}
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		if _, there, err := projection.Get(ctx, tx, what.Erased); err != nil || there {
			return orConflict(err, what.Erased)
		}
		forgotten := false
		what.Bodies, what.BodyBytes, err = tx.EraseBodiesAt(ctx, positions, func() (err error) {
			if first.Key != "" && first.UniqueWhile == "" {
				forgotten, err = past.ForgetSalt(tx, first.Queue, first.Key)
			}
			return err
		})
		if changed = forgotten || what.Bodies > 0; err != nil || !changed {
			return err
		}
		if what.Hi, err = projection.Horizon(ctx, tx); err != nil {
			return err
		}
		what.Reason = reason
		_, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: &what})
		return err
	})
	return what, changed, err
}

func orConflict(err error, id event.JobID) error {
	if err == nil {
		err = fmt.Errorf("%w: the job %s is in the ledger", commands.ErrConflict, id)
	}
	return err
}
