package export

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/prefetch"
	"jobledger/projection"
)

// progressStep is how many lines are written between two calls of LinesOptions.Progress.
const progressStep = 1000

// LinesOptions say how events are written.
type LinesOptions struct {
	Bodies   bool             // with payloads, results and salts; only such lines can be imported
	Progress func(events int) // called now and then with the number of events since the last call; may be nil

	// Withhold returns an event without what its reader may not see; nil: events are not changed.
	Withhold func(event.Event) event.Event
}

// Lines writes the events of w to out, one JSON object a line, and returns how many there were.
func Lines(
	ctx context.Context, store *ledger.Store, w Window, o LinesOptions, out io.Writer,
) (events int64, err error) {
	if w.Empty() {
		return 0, nil
	}
	buffer := bufio.NewWriterSize(out, 64<<10)
	var line []byte
	for l, err := range prefetch.Lines(linesOf(ctx, store, w, o.Bodies)) {
		if err != nil {
			return events, err
		}
		if o.Withhold != nil {
			l.Event = o.Withhold(l.Event)
		}
		line = l.AppendJSON(line[:0])
		if _, err := buffer.Write(append(words.EscapeJSON(line), '\n')); err != nil {
			return events, err
		}
		if events++; events%progressStep == 0 && o.Progress != nil {
			o.Progress(progressStep)
		}
	}
	return events, buffer.Flush()
}

// linesOf yields the events of w, which is not empty. It ends with ErrBusy, instead of skipping events, if
// some leave the ledger for an archive before they are read.
func linesOf(ctx context.Context, store *ledger.Store, w Window, bodies bool) iter.Seq2[
	event.Line, error] {
	return func(yield func(event.Line, error) bool) {
		next := w.After + 1
		for line, err := range store.Lines(ctx, ledger.Filter{After: w.After, Until: w.Until}, bodies) {
			if err == nil && line.Pos > next {
				err = stillHas(ctx, store, next)
			}
			if !yield(line, err) || err != nil {
				return
			}
			next = line.Pos + 1
		}
		if next > w.Until {
			return
		}
		if err := stillHas(ctx, store, next); err != nil {
			yield(event.Line{}, err)
		}
	}
}

// stillHas returns ErrBusy if the event at pos has left the ledger for an archive. A body that is missing for
// another reason is left to verify.
func stillHas(ctx context.Context, store *ledger.Store, pos int64) error {
	return store.Read(ctx, func(tx *ledger.Tx) error {
		horizon, err := projection.Horizon(ctx, tx)
		if err == nil && pos <= horizon {
			err = fmt.Errorf("%w: events from %d on left the ledger for an archive meanwhile; export them again",
				ledger.ErrBusy, pos)
		}
		return err
	})
}
