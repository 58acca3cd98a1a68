package files

import (
	"context"
	"errors"
	"iter"
	"time"

	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/follow"
	"jobledger/projection/status"
)

// ReplayOptions say what is copied where.
type ReplayOptions struct {
	Into  string    // the path of the copy, which must be free
	Until int64     // the pos of the last event of the copy; 0: none
	At    time.Time // the moment of which the copy is, by which Status counts
	Actor string    // for the event imported, which the copy gets if payloads are missing

	Progress func(events int64) // as in ImportOptions
}

// Replayed describes a copy.
type Replayed struct {
	load.Loaded
	Tally follow.Tally // its jobs by queue and state
}

// Replay makes a copy of the ledger in source as it was after the event Until. Payloads that were erased
// since are missing in the copy; its queues are then paused. Its last event, except for these pauses, is
// imported, which names the moment of the copy. Findings list what audit.Verify finds wrong with the copy,
// which are no error.
//
// Errors: ErrExists, ErrLeftover, ErrBadSource.
func Replay(ctx context.Context, source *ledger.Store, o ReplayOptions) (done Replayed, err error) {
	as := load.CopyAsOf{At: o.At}
	_ = source.Read(ctx, func(tx *ledger.Tx) error { // a damaged ledger is copied without
		m, err := projection.AtPos(ctx, tx, o.Until)
		if m.At = o.At; err == nil && o.Until > 0 {
			as.Presence, err = status.PresenceAsOf(ctx, tx, m)
		}
		return err
	})
	done.Loaded, err = newLoaded(ctx, o.Into, "", func(s *staging) (load.Loaded, error) {
		loaded, err := load.ReplayAsOf(ctx, s.Service, o.Actor, source.LedgerPath(), as,
			linesUntil(ctx, source, o.Until), o.Progress)
		if err == nil {
			done.Tally, err = tally(ctx, s.Store, o.At)
		}
		return loaded, err
	})
	if line, ok := errors.AsType[*load.LineError](err); ok {
		return done, refuse(ErrBadSource, "event %d: %w; there is no copy", line.Line, line.Err)
	}
	return done, err
}

// tally counts the jobs by queue and state.
func tally(ctx context.Context, store *ledger.Store, at time.Time) (follow.Tally, error) {
	counts := make(follow.Tally)
	err := store.Read(ctx, func(tx *ledger.Tx) error {
		queues, err := status.Queues{At: projection.Now(at)}.Read(ctx, tx)
		for _, q := range queues {
			counts[q.Name] = q.Jobs
		}
		return err
	})
	return counts, err
}

// linesUntil yields the events of source up to pos until, with their payloads.
func linesUntil(ctx context.Context, source *ledger.Store, until int64) iter.Seq2[event.Line, error] {
	if until == 0 { // in a filter 0 means no end
		return func(func(event.Line, error) bool) {}
	}
	return source.Lines(ctx, ledger.Filter{Until: until}, true)
}
