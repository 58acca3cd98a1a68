package archive

import (
	"context"
	"fmt"

	"jobledger/commands"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/tree"
	"jobledger/projection"
)

// Record records that a range of events is in a segment file, which the caller has read back. The range
// follows on the last one. Errors: commands.InvalidError; commands.ErrConflict if another process has
// archived these events meanwhile; ledger.ErrDamaged if the root is not that of the ledger's events.
func Record(ctx context.Context, s *commands.Service, actor string, what event.Archived) (
	after projection.Segment, err error) {
	if err := commands.CheckActor(actor); err != nil {
		return after, err
	}
	if err := commands.CheckText("reason", what.Reason, commands.MaxReason); err != nil {
		return after, err
	}
	follows := func(tx *ledger.Tx) error {
		last, err := projection.LastSegment(ctx, tx)
		if err == nil && what.Lo != last.Hi {
			err = fmt.Errorf("%w: the events up to %d are archived, and these begin with %d", commands.ErrConflict,
				last.Hi, what.Lo+1)
		}
		return err
	}
	// Events never change, so they are hashed without making a writer wait.
	err = s.Store.Read(ctx, func(tx *ledger.Tx) error {
		if err := follows(tx); err != nil {
			return err
		}
		hashes, err := tree.New(ctx, tx, nil)
		if err != nil {
			return err
		}
		root, err := hashes.Root(ctx, what.Hi)
		if err != nil {
			return err
		}
		if root.String() != what.Root {
			return fmt.Errorf("%w: the root at %d events is %s, and the segment has %s", ledger.ErrDamaged, what.Hi,
				root, what.Root)
		}
		return nil
	})
	if err != nil {
		return after, err
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		if err := follows(tx); err != nil {
			return err
		}
		pos, at := tx.Next(), tx.At()
		e := event.Event{Pos: pos, At: at, Actor: actor, Body: &what}
		if err := e.Validate(); err != nil {
			return fmt.Errorf("%w: %w", commands.ErrInvalid, err)
		}
		after = projection.Segment{Archived: what, Pos: pos, At: at, Actor: actor}
		_, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: &what})
		return err
	})
	return after, err
}
