package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// phaseTitles head the tables of the report.
var phaseTitles = map[string]string{
	"enqueue": "Enqueue, one job a call",
	"batch":   "Enqueue, 1,000 jobs a call",
	"drain":   "Drain, one process",
	"procs":   "Drain, several processes on one file",
}

// report prints what all rounds gave: the conditions, a table for each phase, and what went wrong.
func report(w io.Writer, o options, cond conditions, cells []Cell, results []Result) error {
	p := &printer{w: w}
	p.f("# Queues on SQLite\n\n")
	cond.print(w, o)
	for _, phase := range phaseNames {
		var lines []line
		for _, c := range cells {
			if c.Phase == phase {
				lines = append(lines, newLine(c, cells, results))
			}
		}
		if len(lines) > 0 {
			p.table(phase, lines)
		}
	}
	p.notes(cond, cells, results)
	return p.err
}

// line is what all rounds of one cell gave.
type line struct {
	cell  Cell
	rates []float64 // jobs a second
	runs  []Result  // those that did not fail
	ratio []float64 // to the base, round by round
}

func newLine(c Cell, cells []Cell, results []Result) line {
	l := line{cell: c, runs: runsOf(c, results)}
	var base []Result
	for _, b := range cells {
		if b.base() && b.Phase == c.basePhase() {
			base = runsOf(b, results)
		}
	}
	for _, r := range l.runs {
		l.rates = append(l.rates, r.JobsPerS)
		for _, b := range base {
			if b.Round == r.Round {
				l.ratio = append(l.ratio, r.JobsPerS/b.JobsPerS)
			}
		}
	}
	return l
}

func runsOf(c Cell, results []Result) (runs []Result) {
	for _, r := range results {
		if r.Failure == "" && r.Phase == c.Phase && r.Engine == c.Engine.Name && r.Workers == c.Workers && r.Procs == c.Procs {
			runs = append(runs, r)
		}
	}
	return runs
}

// middle returns the median of one figure over the runs, or "–" where the engine does not give it.
func (l line) middle(format string, of func(Result) *float64) string {
	var v []float64
	for _, r := range l.runs {
		if x := of(r); x != nil {
			v = append(v, *x)
		}
	}
	if len(v) == 0 {
		return "–"
	}
	return fmt.Sprintf(format, median(v))
}

// sum adds one count over the runs.
func (l line) sum(of func(Result) int) (n int) {
	for _, r := range l.runs {
		n += of(r)
	}
	return n
}

// evenness is the share of the slowest process in that of the busiest, in per cent.
func evenness(r Result) *float64 {
	if len(r.Shares) == 0 {
		return nil
	}
	e := 100 * float64(slices.Min(r.Shares)) / float64(max(1, slices.Max(r.Shares)))
	return &e
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, a ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, a...)
	}
}

func (p *printer) table(phase string, lines []line) {
	drains := phase == "drain" || phase == "procs"
	base := "raw-ledger, 8"
	if phase == "batch" {
		base = "raw-batch"
	}
	head := []string{"engine", "workers", "× " + base, "jobs/s", "min–max", "p50 ms", "p99 ms", "max ms", "bytes/job"}
	if drains {
		head = append(head, "longest gap ms", "executions", "twice", "left")
	} else {
		head = append(head, "lost")
	}
	if phase == "procs" {
		head = append(head, "slowest ÷ busiest")
	}
	p.f("\n## %s\n\n| %s |\n|---|%s\n", phaseTitles[phase], strings.Join(head, " | "), strings.Repeat("--:|", len(head)-1))
	for _, l := range lines {
		p.f("| %s |\n", strings.Join(l.columns(drains), " | "))
	}
}

func (l line) columns(drains bool) []string {
	c := l.cell
	workers := fmt.Sprint(c.Workers)
	if c.Procs > 1 {
		workers = fmt.Sprintf("%d × %d", c.Procs, c.Workers)
	}
	if len(l.runs) == 0 {
		return []string{c.Engine.Name, workers, "failed"}
	}
	ratio := "–"
	if len(l.ratio) > 0 {
		ratio = fmt.Sprintf("%.2f", median(l.ratio))
	}
	cols := []string{c.Engine.Name, workers, ratio, thousands(median(l.rates)),
		thousands(slices.Min(l.rates)) + "–" + thousands(slices.Max(l.rates)),
		l.middle("%.2f", func(r Result) *float64 { return r.P50 }),
		l.middle("%.2f", func(r Result) *float64 { return r.P99 }),
		l.middle("%.2f", func(r Result) *float64 { return r.Max }),
		l.middle("%.0f", func(r Result) *float64 { return &r.BytesPerJob })}
	left := thousands(float64(l.sum(func(r Result) int { return r.Left })))
	if !drains {
		return append(cols, left)
	}
	cols = append(cols, l.middle("%.1f", func(r Result) *float64 { return r.GapMS }),
		thousands(float64(l.sum(func(r Result) int { return r.Executions })))+" of "+
			thousands(float64(l.sum(func(r Result) int { return r.Jobs }))),
		thousands(float64(l.sum(func(r Result) int { return r.Duplicates }))), left)
	if c.Phase == "procs" {
		cols = append(cols, l.middle("%.0f %%", evenness))
	}
	return cols
}

func (p *printer) notes(cond conditions, cells []Cell, results []Result) {
	p.f("\nmin–max is of jobs/s; other figures are medians of the rounds, but executions, twice, left and lost are sums.\n")
	p.f("Times are of one call, or of one claim with its completion; – where an engine does not show them.\n\n")
	seen := map[string]bool{}
	for _, c := range cells {
		if e := c.Engine; !seen[e.Name] {
			seen[e.Name] = true
			version := cond.modules[e.Module]
			if version != "" {
				version = " " + version
			}
			p.f("- %s%s: %s\n", e.Name, version, e.Settings)
		}
	}
	for _, r := range results {
		at := fmt.Sprintf("round %d, %s, %s, %d × %d", r.Round, r.Phase, r.Engine, r.Procs, r.Workers)
		if r.Failure != "" {
			p.f("- FAILED: %s: %s\n", at, r.Failure)
		}
		if r.Errors > 0 {
			p.f("- %s: %d operations failed and were tried again, or were given up by the engine\n", at, r.Errors)
		}
	}
}

// thousands prints a count with separators.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
