package print

import (
	"fmt"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

// DiffTitle says between which moments, with times in zone.
func DiffTitle(from, to projection.Moment, zone *time.Location) string {
	return DiffBetween(from, to, zone) + ": " + words.Count(to.Pos-from.Pos, "event")
}

// DiffBetween names two moments, with times in zone.
func DiffBetween(from, to projection.Moment, zone *time.Location) string {
	return fmt.Sprintf("%s (pos %d) to %s (pos %d)", words.Millis(from.At.In(zone)), from.Pos,
		words.Millis(to.At.In(zone)), to.Pos)
}

// DiffMatrix is a table of how many jobs went from one state to another. It has only the states that occur;
// 0 stands for none.
func DiffMatrix(cells []status.DiffCell) *words.Table {
	counts, rows, columns := make(map[[2]event.State]int64), make(map[event.State]bool),
		make(map[event.State]bool)
	for _, cell := range cells {
		counts[[2]event.State{cell.From, cell.To}] = cell.Count
		rows[cell.From], columns[cell.To] = true, true
	}
	t := &words.Table{Columns: []words.Column{{Title: "FROM"}}}
	states := append([]event.State{0}, event.States()...)
	for _, to := range states {
		if columns[to] {
			title := "→ " + strings.ToUpper(stateOrNone(to))
			t.Columns = append(t.Columns, words.Column{Title: title, Right: true})
		}
	}
	for _, from := range states {
		if !rows[from] {
			continue
		}
		line := []string{stateOrNone(from)}
		for _, to := range states {
			if columns[to] {
				line = append(line, fmt.Sprint(counts[[2]event.State{from, to}]))
			}
		}
		t.Add(line...)
	}
	return t
}

// DiffLines names the jobs of each cell, and the workers that came and went, with times in zone.
func DiffLines(d status.Diff, zone *time.Location) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	at := func(t time.Time) string { return words.Millis(t.In(zone)) }
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
		lines = append(lines, line)
	}
	for _, e := range d.Gained {
		add("worker came: %s (%s) at %s", e.Worker.Name, words.Process(e.Worker), at(e.At))
	}
	for _, e := range d.Lost {
		how := "stopped"
		if e.Kind() == event.KindReclaimed {
			how = "not heard of since a job was taken from it"
		}
		add("worker went: %s (%s) at %s, %s", e.Worker.Name, words.Process(e.Worker), at(e.At), how)
	}
	for _, w := range d.Silent {
		held := "idle"
		if n := int64(len(w.Jobs)); n > 0 {
			held = "holding " + words.Count(n, "job")
		}
		add("worker went: %s (%s) at %s, not heard of since, %s", w.Name, words.Process(w.Worker.Worker),
			at(w.SeenAt), held)
	}
	return lines
}

func stateOrNone(s event.State) string {
	if s == 0 {
		return "–"
	}
	return s.String()
}

// DiffJSON is what changed between two moments, for programs.
type DiffJSON struct {
	From   diffMomentJSON     `json:"from"`
	To     diffMomentJSON     `json:"to"`
	Cells  []diffCellJSON     `json:"cells"`
	Gained []workerChangeJSON `json:"workers_gained"`
	Lost   []workerChangeJSON `json:"workers_lost"`
}

type diffMomentJSON struct {
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

// NewDiffJSON is d, from one moment to the other, for programs.
func NewDiffJSON(from, to projection.Moment, d status.Diff) DiffJSON {
	changes := func(events []event.Event) []workerChangeJSON {
		list := make([]workerChangeJSON, 0, len(events))
		for _, e := range events {
			list = append(list, workerChangeJSON{e.Worker.Name, e.Worker.Boot, words.TextOrNull(e.Worker.Host),
				e.Worker.PID, words.JSONTime(e.At), e.Kind().String()})
		}
		return list
	}
	out := DiffJSON{From: diffMomentJSON{words.TimeOrNull(from.At), from.Pos},
		To: diffMomentJSON{words.TimeOrNull(to.At), to.Pos}, Cells: []diffCellJSON{},
		Gained: changes(d.Gained), Lost: changes(d.Lost)}
	for _, w := range d.Silent { // at its last sign of life
		out.Lost = append(out.Lost, workerChangeJSON{w.Name, w.Boot, words.TextOrNull(w.Host), w.PID,
			words.JSONTime(w.SeenAt), "silent"})
	}
	for _, cell := range d.Cells {
		ids := append([]event.JobID{}, cell.Jobs...)
		out.Cells = append(out.Cells, diffCellJSON{words.TextOrNull(cell.From.String()), cell.To.String(),
			cell.Count, ids})
	}
	return out
}
