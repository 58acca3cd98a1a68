package load

import (
	"context"
	"errors"
	"iter"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/prefetch"
	"jobledger/projection/audit"
	"jobledger/projection/keyframe"
)

// ErrLoadAtOnce means that a history could not be written in steps, for a reason that only one transaction
// shows: import it into a fresh ledger without Service.Staging.
var ErrLoadAtOnce = errors.New("the history has to be loaded at once")

// Step is how many events one transaction of a load in steps appends at most, some megabytes. A variable
// for the tests only.
var Step = 20_000

const loadStepBytes = 4 << 20 // of bodies, that end a transaction

// loadInSteps is loadAtOnce in transactions of bounded size. The guards of events are not needed meanwhile:
// everything is checked at the end, the guards too.
func loadInSteps(ctx context.Context, s *commands.Service, lines iter.Seq2[event.Line, error],
	progress func(int64),
	finish func(*ledger.Tx, *Loaded) error) (done Loaded, err error) {
	loader := audit.NewLoader(nil)
	next, stop := iter.Pull2(prefetch.Lines(checked(lines)))
	defer stop()
	err = writeOnce(ctx, s, func(tx *ledger.Tx) error {
		if err := wantEmpty(ctx, tx); err != nil {
			return err
		}
		return tx.DropGuards(ctx)
	})
	for more := true; more && err == nil; {
		err = writeOnce(ctx, s, func(tx *ledger.Tx) error {
			loader.Continue(tx)
			size := 0
			for n := 0; n < Step && size < loadStepBytes; n++ {
				var line event.Line
				var err error
				if line, err, more = next(); !more {
					return loader.End(ctx)
				}
				if err := addLine(ctx, loader, line, err, progress); err != nil {
					return err
				}
				size += len(line.Body)
			}
			return nil
		})
	}
	if err == nil {
		err = writeOnce(ctx, s, func(tx *ledger.Tx) error {
			_, err := tx.RepairSchema(ctx)
			return err
		})
	}
	if err != nil {
		return done, err
	}
	done = Loaded{Events: loader.Events(), Jobs: loader.Jobs()}
	done.Findings, done.Missing, done.Paused, err = audit.CheckLoaded(ctx, s.Store)
	if err != nil {
		return done, err
	}
	if err = writeOnce(ctx, s, func(tx *ledger.Tx) error { return finish(tx, &done) }); err == nil {
		err = keyframe.Fill(ctx, s.Store)
	}
	return done, err
}

// writeOnce is Store.Write of a function that cannot run twice: where it would have to, ErrLoadAtOnce says
// so, unless its error is that of a line, or ctx has ended.
func writeOnce(ctx context.Context, s *commands.Service, fn func(*ledger.Tx) error) error {
	ran, first := false, error(nil)
	return s.Store.Write(ctx, func(tx *ledger.Tx) error {
		if ran {
			wrong, ofLine := errors.AsType[*LineError](first)
			if ofLine && !wrong.ofStore || ctx.Err() != nil {
				return first
			}
			return ErrLoadAtOnce
		}
		ran = true
		first = fn(tx)
		return first
	})
}
