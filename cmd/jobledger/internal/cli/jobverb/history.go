package jobverb

import (
	"fmt"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
)

// PrintHistory prints the events of one job, the oldest first: a line each, with the time since the event
// before, or one object of JSON each.
func PrintHistory(p *cli.Program, events []event.Event) error {
	if p.JSON {
		return cli.PrintJSONLines(p, events)
	}
	first, last := events[0], events[len(events)-1]
	header := fmt.Sprintf("job %s: %s, %s in %s", first.Job, print.LastState(events),
		words.Count(int64(len(events)), "event"),
		words.Briefly(last.At.Sub(first.At)))
	if err := p.PrintLine(header); err != nil {
		return err
	}
	width := 0
	for _, e := range events {
		width = max(width, len(e.Kind().String()))
	}
	for _, l := range print.HistoryLines(events) {
		after := ""
		if l.After != "" {
			after = "+" + l.After
		}
		if err := printEvent(p, l.Event, after, width); err != nil {
			return err
		}
		if l.Skipped != "" {
			if err := p.PrintLine("    … " + l.Skipped + "; --json has them"); err != nil {
				return err
			}
		}
	}
	return nil
}

// printEvent prints one event, whose kind is padded to width.
func printEvent(p *cli.Program, e event.Event, after string, width int) error {
	kind, kindStyle := words.KindLabel(e)
	to, toStyle := words.StateLabel(e)
	columns := []string{p.FormatMillis(e.At), words.Pad(after, 9, true), words.Pad(kind, width, false), to}
	styles := []words.Style{words.Plain, words.Gray, kindStyle, toStyle}
	if err := p.PrintEvent(columns, styles, p.Describe(e)); err != nil {
		return err
	}
	if f, ok := e.Body.(*event.Failed); ok && f.ErrorDetail != "" {
		_, err := p.Stdout.WriteString(words.Block(f.ErrorDetail, p.StdoutTerminal))
		return err
	}
	return nil
}
