package export

import (
	"bufio"
	"context"
	"io"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/prefetch"
)

// progressStep is how many lines are written between two calls of LinesOptions.Progress.
const progressStep = 1000

// LinesOptions say how events are written.
type LinesOptions struct {
	Bodies   bool             // with payloads, results and salts; only such lines can be imported
	Progress func(events int) // called now and then with the number of events since the last call; may be nil

	// Withhold returns a line as its reader may see it; nil: as it is.
	Withhold func(line []byte) ([]byte, error)
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
	for l, err := range prefetch.Lines(store.Lines(ctx, ledger.Filter{After: w.After, Until: w.Until},
		o.Bodies)) {
		if err != nil {
			return events, err
		}
		line = l.AppendJSON(line[:0])
		shown := render.EscapeJSON(line)
		if o.Withhold != nil {
			if shown, err = o.Withhold(shown); err != nil {
				return events, err
			}
		}
		if _, err := buffer.Write(append(shown, '\n')); err != nil {
			return events, err
		}
		if events++; events%progressStep == 0 && o.Progress != nil {
			o.Progress(progressStep)
		}
	}
	return events, buffer.Flush()
}
