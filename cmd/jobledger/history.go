package main

import (
	"fmt"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/jobref"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// historyVerb answers "what happened to this job, when, and who did it".
func historyVerb(p *program) cli.Verb {
	return jobref.Verb(cli.Verb{
		Name: "history", Group: cli.GroupAudit, Usage: "show what happened to a job, event by event",
		About: "Each line says when, how long after the event before, what happened, to which state that led, " +
			"and who did it. A write that was refused, because its lease was lost or the job had ended, reads " +
			"REFUSED and says why.",
		Args: "JOB", MinArgs: 1, MaxArgs: 1,
		Examples: []cli.Example{
			{"jobledger history 01KDY9FY88", "the timeline of the job whose id begins with these letters"},
			{"jobledger history 01KDY9FY88 --json", "its events, one a line, with all that they say"},
		},
		Exits: []int{cli.ExitNoJob},
		Run: func(c *cli.Context) error {
			ref, _, err := jobref.OneFromLine(c)
			if err != nil {
				return err
			}
			var events []event.Event
			err = p.Read(c.Context, func(tx *ledger.Tx) error {
				n, err := ref.Number(c.Context, tx)
				if err != nil {
					return err
				}
				for e, err := range tx.Events(c.Context, ledger.Filter{Job: n}) {
					if err != nil {
						return err
					}
					events = append(events, e)
				}
				return nil
			})
			if err != nil {
				return err
			}
			return p.printHistory(events)
		},
	})
}

func (p *program) printHistory(events []event.Event) error {
	if p.JSON {
		return cli.PrintJSONLines(p.Program, events)
	}
	first, last := events[0], events[len(events)-1]
	header := fmt.Sprintf("job %s: %s, %s in %s", first.Job, lastState(events),
		render.Count(int64(len(events)), "event"),
		render.Briefly(last.At.Sub(first.At)))
	if err := p.PrintLine(header); err != nil {
		return err
	}
	width := 0
	for _, e := range events {
		width = max(width, len(e.Kind().String()))
	}
	for i := 0; i < len(events); i++ {
		after := ""
		if i > 0 {
			after = "+" + render.Gap(events[i].At.Sub(events[i-1].At))
		}
		if err := p.printHistoryEvent(events[i], after, width); err != nil {
			return err
		}
		if beats := heartbeats(events[i:]); beats > 3 { // a long job has thousands; print the first and the last
			if err := p.printSkipped(events[i : i+beats-1]); err != nil {
				return err
			}
			i += beats - 2
		}
	}
	return nil
}

// lastState is the state to which events have led.
func lastState(events []event.Event) (state event.State) {
	for _, e := range events {
		if e.To != 0 {
			state = e.To
		}
	}
	return state
}

// printHistoryEvent prints one event, whose kind is padded to width.
func (p *program) printHistoryEvent(e event.Event, after string, width int) error {
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

// printSkipped prints a line in place of all heartbeats but the first.
func (p *program) printSkipped(beats []event.Event) error {
	longest := time.Duration(0)
	for i, e := range beats[1:] {
		longest = max(longest, e.At.Sub(beats[i].At))
	}
	return p.PrintLine(fmt.Sprintf("    … %s more, the longest pause was %s; --json has them",
		render.Count(int64(len(beats)-1), "heartbeat"), render.Gap(longest)))
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
