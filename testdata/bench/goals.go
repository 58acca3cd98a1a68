package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// The goals of speed: -goals. Each is a ratio within a round, or a figure of a run; next to it stands what bare
// SQL reaches in the same round where it does the same, on its own tables or on those of jobledger.

const (
	slowDiskSync = 5 * time.Millisecond // what a sync takes more on the slow disk
	goalLanes    = 100
)

// goalRun is one run of a round.
type goalRun struct {
	key    string
	engine string
	Cell
	lanes int
	slow  time.Duration
}

func goalRuns(o options) []goalRun {
	drains := func(key, engine string, procs, workers, jobs, lanes int, slow time.Duration) goalRun {
		c := Cell{Phase: "drain", Workers: workers, Procs: procs, Jobs: jobs}
		if procs > 1 {
			c.Phase = "procs"
		}
		return goalRun{key, engine, c, lanes, slow}
	}
	batches := func(key, engine string) goalRun {
		return goalRun{key: key, engine: engine, Cell: Cell{Phase: "batch", Workers: 1, Procs: 1, Jobs: o.batches * batchSize}}
	}
	return []goalRun{
		drains("floor", "raw-ledger", 1, 8, o.jobs, 1, 0),
		drains("bare 1 x 64", "raw-grouped", 1, 64, 6*o.jobs, 1, 0),
		drains("tables 1 x 64", "raw-schema", 1, 64, 6*o.jobs, 1, 0),
		drains("1 x 64", "jobledger", 1, 64, 6*o.jobs, 1, 0),
		drains("4 x 16", "jobledger", 4, 16, 6*o.jobs, 1, 0),
		drains("tables, lanes", "raw-schema", 1, 64, 6*o.jobs, goalLanes, 0),
		drains("lanes", "jobledger", 1, 64, 6*o.jobs, goalLanes, 0),
		batches("bare batch", "raw-batch"),
		batches("tables batch", "raw-schema"),
		batches("batch", "jobledger"),
		drains("slow 1 x 64", "jobledger", 1, 64, 2*o.jobs, 1, slowDiskSync),
		drains("slow 4 x 16", "jobledger", 4, 16, 2*o.jobs, 1, slowDiskSync),
		{key: "latency", engine: "jobledger", Cell: Cell{Phase: "latency", Workers: latencySlots, Procs: 2,
			Jobs: o.latency + latencyWarmUp}},
	}
}

// measureGoals prints the table of the goals, and what it depends on.
func measureGoals(ctx context.Context, o options, stdout, stderr io.Writer) error {
	root, err := os.MkdirTemp(o.dir, "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	cond, err := newConditions(ctx, o)
	if err != nil {
		return err
	}
	shell, err := newShell(ctx, root)
	if err != nil {
		fmt.Fprintf(stderr, "bench: the command line is left out: %v\n", err)
	}
	if o.postgres == "" {
		fmt.Fprintln(stderr, "bench: PostgreSQL is left out; -postgres URL names a server for it, of a superuser")
	}
	g := goals{options: o, root: root, shell: shell, stderr: stderr, found: make(map[string][]float64)}
	for n := range o.rounds {
		began := time.Now()
		if _, err := cond.measure(ctx, o, root); err != nil {
			return err
		}
		if err := g.onSQLite(ctx, n); err != nil {
			return err
		}
		if o.postgres != "" {
			if err := g.onPostgres(ctx, n); err != nil {
				return err
			}
		}
		fmt.Fprintf(stderr, "round %d took %s\n", n+1, time.Since(began).Round(time.Second))
	}
	out := &printer{w: stdout}
	g.print(out)
	if out.err == nil {
		cond.print(stdout, o)
	}
	return out.err
}

// goals is what has been found.
type goals struct {
	options
	root   string
	shell  *shell // nil: it cannot be measured
	stderr io.Writer
	found  map[string][]float64 // by key, the figure of each round
}

func (g *goals) keep(key string, value float64) { g.found[key] = append(g.found[key], value) }

// onSQLite is a round.
func (g *goals) onSQLite(ctx context.Context, n int) error {
	runs := goalRuns(g.options)
	round := make(map[string]float64) // jobs a second
	for i := range runs {
		run := runs[(i+n*len(runs)/g.rounds)%len(runs)]
		r := runGoal(ctx, run, g.options, g.root)
		if ctx.Err() != nil {
			return errInterrupted
		}
		fmt.Fprintf(g.stderr, "round %d  %-14s %-12s %8.0f jobs/s  %6.2f s  %s\n", n+1, run.key, run.engine, r.JobsPerS,
			r.Seconds, r.Failure)
		if !r.whole() {
			continue
		}
		round[run.key] = r.JobsPerS
		g.keep(run.key, r.JobsPerS)
		switch run.key {
		case "latency":
			g.keep("latency p50", *r.P50)
		case "1 x 64":
			g.keep("bytes", r.BytesPerJob)
		case "tables 1 x 64":
			g.keep("bytes of tables", r.BytesPerJob)
		}
	}
	if g.shell != nil {
		t, err := g.shell.compare(ctx, 20)
		if err != nil {
			return err
		}
		g.keep("shell ms", t.enqueue*1000)
		g.keep("start ms", t.start*1000)
		g.keep("shell", t.enqueue/t.shell)
		g.keep("shell bound", t.insert/t.shell)
		one, many, err := g.shell.compareRun(ctx, 20)
		if err != nil {
			return err
		}
		g.keep("run", one)
		if many > 0 {
			g.keep("run lines", many)
		}
	}
	for _, ratio := range [][3]string{
		{"drain", "1 x 64", "bare 1 x 64"}, {"drain bound", "tables 1 x 64", "bare 1 x 64"},
		{"procs", "4 x 16", "floor"}, {"slow", "slow 4 x 16", "slow 1 x 64"},
		{"batch ratio", "batch", "bare batch"}, {"batch bound", "tables batch", "bare batch"},
		{"lanes ratio", "lanes", "1 x 64"}, {"lanes bound", "tables, lanes", "tables 1 x 64"},
	} {
		if of, to := round[ratio[1]], round[ratio[2]]; of > 0 && to > 0 {
			g.keep(ratio[0], of/to)
		}
	}
	return nil
}

// at returns the median of the rounds; "–": there is none.
func (g *goals) at(key, format string) string {
	if len(g.found[key]) == 0 {
		return "–"
	}
	return fmt.Sprintf(format, median(g.found[key]))
}

// print prints the medians.
func (g *goals) print(out *printer) {
	rate := func(key string) string { return g.at(key, "%.0f") }
	out.f("| | goal | now | bare SQL with the same tables |\n|---|--:|--:|--:|\n")
	if g.postgres != "" {
		g.printPostgres(out)
	}
	out.f("| SQLite: drain, 64 workers, ÷ bare SQL that shares transactions (jobs/s) | ≥ 0.75 | %s (%s of %s) | %s (%s) |\n",
		g.at("drain", "%.2f"), rate("1 x 64"), rate("bare 1 x 64"), g.at("drain bound", "%.2f"), rate("tables 1 x 64"))
	out.f("| drain, 4 × 16, × floor | ≥ 7 | %s (%s of %s) | |\n", g.at("procs", "%.1f"), rate("4 x 16"), rate("floor"))
	out.f("| on a disk whose syncs take %s more, 4 × 16 ÷ 1 × 64 | ≥ 0.9 | %s (%s of %s) | |\n", slowDiskSync,
		g.at("slow", "%.2f"), rate("slow 4 x 16"), rate("slow 1 x 64"))
	out.f("| from enqueuing to the start in another process, p50 | ≤ 1.5 ms | %s ms | |\n", g.at("latency p50", "%.2f"))
	out.f("| batch of 1,000 ÷ bare batch with events | ≥ 0.8 | %s (%s of %s) | %s (%s) |\n", g.at("batch ratio", "%.2f"),
		rate("batch"), rate("bare batch"), g.at("batch bound", "%.2f"), rate("tables batch"))
	out.f("| bytes a finished job | ≤ 500 | %s | %s |\n", g.at("bytes", "%.0f"), g.at("bytes of tables", "%.0f"))
	out.f("| drain of %d priorities ÷ one | ≥ 0.8 | %s (%s) | %s (%s) |\n", goalLanes, g.at("lanes ratio", "%.2f"),
		rate("lanes"), g.at("lanes bound", "%.2f"), rate("tables, lanes"))
	out.f("| `jobledger enqueue` ÷ an insert by the `sqlite3` shell | ≤ 1.5 | %s (%s ms, of which its start %s) | from Go %s |\n", g.at("shell", "%.1f"),
		g.at("shell ms", "%.1f"), g.at("start ms", "%.1f"), g.at("shell bound", "%.1f"))
	out.f("| `jobledger run -- true` ÷ `enqueue` and `work --once` | ≤ 0.7 | %s | |\n", g.at("run", "%.2f"))
	out.f("| `jobledger run -k` of %d lines ÷ GNU parallel | ≤ 0.6 | %s | |\n", manyLines, g.at("run lines", "%.2f"))
	out.f("\n")
}

// runGoal runs g once, in a directory of its own.
func runGoal(ctx context.Context, g goalRun, o options, root string) (r Result) {
	c := g.Cell
	c.Engine, _ = engineNamed(g.engine)
	r = Result{Phase: c.Phase, Engine: g.engine, Workers: c.Workers, Procs: c.Procs, Jobs: c.Jobs}
	limit, cancel := context.WithTimeout(ctx, cellLimit)
	defer cancel()
	err := func() (err error) {
		dir, err := os.MkdirTemp(root, "goal-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := slowSyncs(g.slow); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, slowSyncs(0)) }()
		f := File{Path: filepath.Join(dir, "queue.db"), Sync: o.sync, New: true, Lanes: g.lanes, SlowSync: g.slow}
		switch c.Phase {
		case "batch":
			return batch(limit, c, f, &r)
		case "latency":
			return latency(limit, c, f, &r)
		case "procs":
			return drainInProcesses(limit, c, f, &r)
		}
		return drain(limit, c, f, &r)
	}()
	if err != nil {
		r.Failure = err.Error()
	}
	return r
}
