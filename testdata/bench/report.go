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
	"procs":   "Drain, several processes at once",
	"latency": "From enqueuing to the start of the handler, one job at a time, idle workers",
	"transact": "A row and its job in one transaction, until workers can see the job (1 caller: 1,000 of " +
		"each in a transaction)",
	"commit": "From the commit of such a transaction to the start of the handler, idle workers in the same process",
}

// report prints what all rounds gave: the conditions, a table for each phase, and what went wrong.
func report(w io.Writer, o options, cond conditions, cells []Cell, results []Result) error {
	p := &printer{w: w}
	p.f("# Durable queues\n\n")
	cond.print(w, o)
	for _, phase := range phaseNames {
		for _, onServer := range []bool{false, true} {
			var lines []line
			for _, c := range cells {
				if c.Phase == phase && c.Engine.Postgres == onServer {
					lines = append(lines, newLine(c, cells, results))
				}
			}
			if len(lines) > 0 {
				p.table(phase, lines)
			}
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
	base  string    // against what it is measured; "" for nothing
	ratio []float64 // to that, round by round; of the times in the latency phase, else of the rates
}

func newLine(c Cell, cells []Cell, results []Result) line {
	l := line{cell: c, runs: runsOf(c, results)}
	l.rates = ratesOf(l.runs)
	var base []Result
	l.base, base = baseOf(c, cells, results)
	for _, r := range l.runs {
		for _, b := range base {
			switch {
			case b.Round != r.Round:
			case !c.timed():
				l.ratio = append(l.ratio, r.JobsPerS/b.JobsPerS)
			case r.P50 != nil && b.P50 != nil:
				l.ratio = append(l.ratio, *r.P50 / *b.P50)
			}
		}
	}
	return l
}

// baseOf returns the runs that those of c are measured against.
func baseOf(c Cell, cells []Cell, results []Result) (name string, base []Result) {
	best := 0.0
	for _, b := range cells {
		switch {
		case b.Engine.Postgres != c.Engine.Postgres:
		case !c.Engine.Postgres && b.base() && b.Phase == c.basePhase():
			name, base = "raw-ledger, 8", runsOf(b, results)
			if c.Phase == "batch" {
				name = "raw-batch"
			}
		case b.Engine.Name != "river-pg" || b.Phase != c.Phase:
		case c.Phase == "transact":
			if name = "river-pg, as many"; b.Workers == c.Workers {
				base = runsOf(b, results)
			}
		case c.timed():
			if name = "river-pg"; b.Procs == c.Procs {
				base = runsOf(b, results)
			}
		default:
			runs := runsOf(b, results)
			if m := median(ratesOf(runs)); m > best {
				best, base, name = m, runs, "river-pg, "+b.workers()
			}
		}
	}
	return name, base
}

// workers names how many work, and where.
func (c Cell) workers() string {
	switch {
	case c.timed() && c.Procs == 1:
		return "same process"
	case c.Phase == "latency":
		return "another process"
	case c.Procs > 1:
		return fmt.Sprintf("%d × %d", c.Procs, c.Workers)
	}
	return fmt.Sprint(c.Workers)
}

func runsOf(c Cell, results []Result) (runs []Result) {
	for _, r := range results {
		if r.Failure == "" && r.Phase == c.Phase && r.Engine == c.Engine.Name && r.Workers == c.Workers &&
			r.Procs == c.Procs {
			runs = append(runs, r)
		}
	}
	return runs
}

// ratesOf returns how many jobs a second each run did.
func ratesOf(runs []Result) (rates []float64) {
	for _, r := range runs {
		rates = append(rates, r.JobsPerS)
	}
	return rates
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
	title := phaseTitles[phase]
	if lines[0].cell.Engine.Postgres {
		title += ", PostgreSQL"
	}
	columns := columnsOf(phase)
	var head []string
	for _, c := range columns {
		head = append(head, c.head)
	}
	p.f("\n## %s\n\n| engine | workers | %s |\n|---|--:|%s\n", title, strings.Join(head, " | "),
		strings.Repeat("--:|", len(head)))
	for _, l := range lines {
		cells := []string{l.cell.Engine.Name, l.cell.workers()}
		for _, c := range columns {
			if len(l.runs) == 0 {
				cells = append(cells, "failed")
				break
			}
			cells = append(cells, c.of(l))
		}
		p.f("| %s |\n", strings.Join(cells, " | "))
	}
	if base := lines[0].base; base != "" {
		p.f("\n× is measured against %s.\n", base)
	}
}

// column is a figure of a line.
type column struct {
	head string
	of   func(l line) string
}

// columnsOf returns the columns of a phase, behind those that name the line.
func columnsOf(phase string) []column {
	median := func(head, format string, of func(Result) *float64) column {
		return column{head, func(l line) string { return l.middle(format, of) }}
	}
	total := func(head string, of func(Result) int) column {
		return column{head, func(l line) string { return thousands(float64(l.sum(of))) }}
	}
	columns := []column{{"×", line.ratios}}
	if !(Cell{Phase: phase}).timed() { // where the pauses decide on the rate, and few jobs on the size
		columns = append(columns, column{"jobs/s", line.rate}, column{"min–max", line.span})
	}
	columns = append(columns,
		median("p50 ms", "%.2f", func(r Result) *float64 { return r.P50 }),
		median("p99 ms", "%.2f", func(r Result) *float64 { return r.P99 }),
		median("max ms", "%.2f", func(r Result) *float64 { return r.Max }))
	if !(Cell{Phase: phase}).timed() && phase != "transact" { // whose tables have more than the jobs
		columns = append(columns, median("bytes/job", "%.0f", func(r Result) *float64 { return &r.BytesPerJob }))
	}
	left := func(r Result) int { return r.Left }
	if phase == "enqueue" || phase == "batch" || phase == "transact" {
		return append(columns, total("lost", left))
	}
	if !(Cell{Phase: phase}).timed() {
		columns = append(columns, median("longest gap ms", "%.1f", func(r Result) *float64 { return r.GapMS }))
	}
	if phase == "commit" {
		columns = append(columns, median("transaction p50 ms", "%.2f", func(r Result) *float64 { return r.TxP50 }))
	}
	columns = append(columns, column{"executions", line.executions},
		total("twice", func(r Result) int { return r.Duplicates }), total("left", left))
	if phase == "procs" {
		columns = append(columns, median("slowest ÷ busiest", "%.0f %%", evenness))
	}
	return columns
}

func (l line) ratios() string {
	if len(l.ratio) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", median(l.ratio))
}

func (l line) rate() string { return thousands(median(l.rates)) }

func (l line) span() string {
	return thousands(slices.Min(l.rates)) + "–" + thousands(slices.Max(l.rates))
}

func (l line) executions() string {
	return thousands(float64(l.sum(func(r Result) int { return r.Executions }))) + " of " +
		thousands(float64(l.sum(func(r Result) int { return r.Jobs })))
}

func (p *printer) notes(cond conditions, cells []Cell, results []Result) {
	p.f(
		"\nmin–max is of jobs/s; other figures are medians of the rounds, but executions, twice, left and lost are sums.\n")
	p.f("Times are of one call, or of one claim with its completion; – where an engine does not show them.\n")
	p.f("× is the median of the ratios within a round: of jobs/s, and of p50 in the phases latency and commit.\n\n")
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
