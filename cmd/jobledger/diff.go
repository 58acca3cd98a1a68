package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// diffVerb shows what an incident did, by what was before and what was after it.
func diffVerb(p *program) cli.Verb {
	return cli.Verb{
		Name: "diff", Group: cli.GroupAudit, Usage: "show what changed between two moments",
		About: "How many jobs were in one state at --from (left) and in another at --to (above); – is not " +
			"enqueued yet. Jobs to which nothing happened in between are not counted. Below stand the oldest jobs " +
			"of each cell, and the workers that came and went: stopped, or not heard of again since a lease of " +
			"theirs ran out or since their last sign of life. One that came and stopped in between did both.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "from", Usage: "the first moment: a `TIME`, or a place in the ledger, pos:N",
				Required: true},
			&cli.StringFlag{Name: "to", Usage: "the second `TIME`", DefaultText: "now"},
			cli.WholeFlag("limit", "name up to `N` jobs of each cell", 5, 0, math.MaxInt, ""),
		},
		Examples: []cli.Example{
			{"jobledger diff --from 14:00 --to 14:30", "what that half hour did"},
			{"jobledger diff --from -1h --limit 100000 --json | jq -r '.cells[] | select(.to==\"failed\") | .jobs[]'",
				"the jobs that failed for good in the last hour"},
		},
		Run: p.diff,
	}
}

func (p *program) diff(c *cli.Context) error {
	var from, to projection.Moment
	var d status.Diff
	err := p.Read(c.Context, func(tx *ledger.Tx) (err error) {
		var given bool
		if from, _, err = p.MomentFlag(c, "from", tx); err != nil {
			return err
		}
		if to, given, err = p.MomentFlag(c, "to", tx); err == nil && !given {
			to, err = p.newest(c.Context, tx)
		}
		if err != nil {
			return err
		}
		if from.Pos > to.Pos {
			return cli.Usagef("--from is later than --to")
		}
		d, err = status.Compare(c.Context, tx, from, to, c.Int("limit"))
		return err
	})
	switch {
	case err != nil:
		return err
	case p.JSON:
		return p.PrintJSON(p.diffJSON(from, to, d))
	}
	return p.printDiff(from, to, d)
}

// newest is the moment of which a copy is; else now.
func (p *program) newest(ctx context.Context, tx *ledger.Tx) (projection.Moment, error) {
	made, ok, err := status.CopyOf(ctx, tx)
	if err != nil || ok {
		return made.Moment, err
	}
	return projection.AtTime(ctx, tx, p.Now())
}

func (p *program) printDiff(from, to projection.Moment, d status.Diff) error {
	header := fmt.Sprintf("%s (pos %d) to %s (pos %d): %s", p.FormatMillis(from.At), from.Pos,
		p.FormatMillis(to.At), to.Pos, render.Count(to.Pos-from.Pos, "event"))
	if err := p.PrintLine(header); err != nil {
		return err
	}
	if err := p.printMatrix(d.Cells); err != nil {
		return err
	}
	for _, cell := range d.Cells {
		if len(cell.Jobs) == 0 {
			continue
		}
		line := fmt.Sprintf("%s → %s:", stateOrNone(cell.From), cell.To)
		for _, id := range cell.Jobs {
			line += " " + string(id)
		}
		if more := cell.Count - int64(len(cell.Jobs)); more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		if err := p.PrintLine(line); err != nil {
			return err
		}
	}
	for _, e := range d.Gained {
		if err := p.PrintLine(fmt.Sprintf("worker came: %s (%s) at %s", e.Worker.Name, render.Process(e.Worker),
			p.FormatMillis(e.At))); err != nil {
			return err
		}
	}
	for _, e := range d.Lost {
		how := "stopped"
		if e.Kind() == event.KindReclaimed {
			how = "not heard of since a job was taken from it"
		}
		if err := p.PrintLine(fmt.Sprintf("worker went: %s (%s) at %s, %s", e.Worker.Name, render.Process(e.Worker),
			p.FormatMillis(e.At), how)); err != nil {
			return err
		}
	}
	for _, w := range d.Silent {
		held := "idle"
		if n := int64(len(w.Jobs)); n > 0 {
			held = "holding " + render.Count(n, "job")
		}
		if err := p.PrintLine(fmt.Sprintf("worker went: %s (%s) at %s, not heard of since, %s", w.Name,
			render.Process(w.Worker.Worker), p.FormatMillis(w.SeenAt), held)); err != nil {
			return err
		}
	}
	return nil
}

// printMatrix prints only the states that occur.
func (p *program) printMatrix(cells []status.DiffCell) error {
	if len(cells) == 0 {
		return p.PrintLine("nothing happened to any job")
	}
	counts, rows, columns := make(map[[2]event.State]int64), make(map[event.State]bool),
		make(map[event.State]bool)
	for _, cell := range cells {
		counts[[2]event.State{cell.From, cell.To}] = cell.Count
		rows[cell.From], columns[cell.To] = true, true
	}
	t := &cli.Table{Columns: []cli.Column{{Title: "FROM"}}}
	for _, to := range event.States() {
		if columns[to] {
			t.Columns = append(t.Columns, cli.Column{Title: "→ " + strings.ToUpper(to.String()), Right: true})
		}
	}
	for _, from := range append([]event.State{0}, event.States()...) {
		if !rows[from] {
			continue
		}
		line := []string{stateOrNone(from)}
		for _, to := range event.States() {
			if columns[to] {
				line = append(line, fmt.Sprint(counts[[2]event.State{from, to}]))
			}
		}
		t.Add(line...)
	}
	return p.PrintTable(t)
}

func stateOrNone(s event.State) string {
	if s == 0 {
		return "–"
	}
	return s.String()
}

type diffJSON struct {
	From   momentJSON         `json:"from"`
	To     momentJSON         `json:"to"`
	Cells  []diffCellJSON     `json:"cells"`
	Gained []workerChangeJSON `json:"workers_gained"`
	Lost   []workerChangeJSON `json:"workers_lost"`
}

type momentJSON struct {
	At  *string `json:"at"`
	Pos int64   `json:"pos"`
}

type diffCellJSON struct {
	From  *string       `json:"from"` // null: enqueued in between
	To    string        `json:"to"`
	Count int64         `json:"count"`
	Jobs  []event.JobID `json:"jobs"`
}

type workerChangeJSON struct {
	Worker string  `json:"worker"`
	Boot   string  `json:"boot"`
	Host   *string `json:"host"`
	PID    int     `json:"pid"`
	At     string  `json:"at"`
	// worker_started, worker_stopped, the reclaimed after which nothing came, or silent
	Event string `json:"event"`
}

func (p *program) diffJSON(from, to projection.Moment, d status.Diff) diffJSON {
	changes := func(events []event.Event) []workerChangeJSON {
		list := make([]workerChangeJSON, 0, len(events))
		for _, e := range events {
			list = append(list, workerChangeJSON{e.Worker.Name, e.Worker.Boot, render.TextOrNull(e.Worker.Host),
				e.Worker.PID, render.JSONTime(e.At), e.Kind().String()})
		}
		return list
	}
	out := diffJSON{From: momentJSON{render.TimeOrNull(from.At), from.Pos},
		To: momentJSON{render.TimeOrNull(to.At), to.Pos}, Cells: []diffCellJSON{},
		Gained: changes(d.Gained), Lost: changes(d.Lost)}
	for _, w := range d.Silent { // at its last sign of life
		out.Lost = append(out.Lost, workerChangeJSON{w.Name, w.Boot, render.TextOrNull(w.Host), w.PID,
			render.JSONTime(w.SeenAt), "silent"})
	}
	for _, cell := range d.Cells {
		ids := append([]event.JobID{}, cell.Jobs...)
		out.Cells = append(out.Cells, diffCellJSON{render.TextOrNull(cell.From.String()), cell.To.String(),
			cell.Count, ids})
	}
	return out
}
