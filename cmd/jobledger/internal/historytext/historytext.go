// Package historytext is the history of a job as people read it.
package historytext

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger/event"
)

// Print prints the events of one job, the oldest first: a line each, with the time since the event before, or
// one object of JSON each.
func Print(p *cli.Program, events []event.Event) error {
	if p.JSON {
		return cli.PrintJSONLines(p, events)
	}
	first, last := events[0], events[len(events)-1]
	header := fmt.Sprintf("job %s: %s, %s in %s", first.Job, LastState(events),
		render.Count(int64(len(events)), "event"),
		render.Briefly(last.At.Sub(first.At)))
	if err := p.PrintLine(header); err != nil {
		return err
	}
	width := 0
	for _, e := range events {
		width = max(width, len(e.Kind().String()))
	}
	for _, l := range Lines(events) {
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

// Line is one event of a history.
type Line struct {
	event.Event
	After   string // how long after the event before; "" for the first
	Skipped string // what is left out after it; "" for nothing
}

// Lines are the events that people read. Of the heartbeats of a long job, of which there are thousands, the
// first and the last are there.
func Lines(events []event.Event) (lines []Line) {
	for i := 0; i < len(events); i++ {
		l := Line{Event: events[i]}
		if i > 0 {
			l.After = render.Gap(events[i].At.Sub(events[i-1].At))
		}
		if beats := heartbeats(events[i:]); beats > 3 {
			l.Skipped = skipped(events[i : i+beats-1])
			i += beats - 2
		}
		lines = append(lines, l)
	}
	return lines
}

// LastState is the state to which events have led.
func LastState(events []event.Event) (state event.State) {
	for _, e := range events {
		if e.To != 0 {
			state = e.To
		}
	}
	return state
}

// printEvent prints one event, whose kind is padded to width.
func printEvent(p *cli.Program, e event.Event, after string, width int) error {
	kind, kindStyle := render.KindLabel(e)
	to, toStyle := render.StateLabel(e)
	columns := []string{p.FormatMillis(e.At), render.Pad(after, 9, true), render.Pad(kind, width, false), to}
	styles := []render.Style{render.Plain, render.Gray, kindStyle, toStyle}
	if err := p.PrintEvent(columns, styles, p.Describe(e)); err != nil {
		return err
	}
	if f, ok := e.Body.(*event.Failed); ok && f.ErrorDetail != "" {
		_, err := p.Stdout.WriteString(render.Block(f.ErrorDetail, p.StdoutTerminal))
		return err
	}
	return nil
}

// skipped says what all heartbeats but the first are.
func skipped(beats []event.Event) string {
	longest := time.Duration(0)
	for i, e := range beats[1:] {
		longest = max(longest, e.At.Sub(beats[i].At))
	}
	return fmt.Sprintf("%s more, the longest pause was %s", render.Count(int64(len(beats)-1), "heartbeat"),
		render.Gap(longest))
}

// heartbeats is how many of them events begin with.
func heartbeats(events []event.Event) int {
	for i, e := range events {
		if e.Kind() != event.KindHeartbeat {
			return i
		}
	}
	return len(events)
}
