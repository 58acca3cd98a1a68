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

// The goals of speed on SQLite: -goals. Each is a ratio within a round, or a figure of a run; next to it stands
// what bare SQL reaches in the same round where it does the same, on its own tables or on those of jobledger.

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

// measureGoals prints the table of the goals.
func measureGoals(ctx context.Context, o options, stdout, stderr io.Writer) error {
	root, err := os.MkdirTemp(o.dir, "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	shell, err := newShell(ctx, root)
	if err != nil {
		fmt.Fprintf(stderr, "bench: the command line is left out: %v\n", err)
	}
	runs := goalRuns(o)
	found := make(map[string][]float64) // by key, jobs a second of each round
	keep := func(key string, value float64) { found[key] = append(found[key], value) }
	ratio := func(round map[string]float64, name, of, to string) {
		if round[of] > 0 && round[to] > 0 {
			keep(name, round[of]/round[to])
		}
	}
	for n := range o.rounds {
		round := make(map[string]float64)
		for i := range runs {
			g := runs[(i+n*len(runs)/o.rounds)%len(runs)]
			r := runGoal(ctx, g, o, root)
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			fmt.Fprintf(stderr, "round %d  %-14s %-12s %8.0f jobs/s  %6.2f s  %s\n", n+1, g.key, g.engine, r.JobsPerS,
				r.Seconds, r.Failure)
			if r.Failure != "" || r.Left > 0 || r.Duplicates > 0 {
				continue
			}
			round[g.key] = r.JobsPerS
			keep(g.key, r.JobsPerS)
			if g.key == "latency" {
				keep("latency p50", *r.P50)
			}
			switch g.key {
			case "1 x 64":
				keep("bytes", r.BytesPerJob)
			case "tables 1 x 64":
				keep("bytes of tables", r.BytesPerJob)
			}
		}
		if shell != nil {
			ours, theirs, err := shell.compare(ctx, 20)
			if err != nil {
				return err
			}
			keep("shell ms", ours*1000)
			keep("shell", ours/theirs)
		}
		ratio(round, "drain", "1 x 64", "bare 1 x 64")
		ratio(round, "drain bound", "tables 1 x 64", "bare 1 x 64")
		ratio(round, "procs", "4 x 16", "floor")
		ratio(round, "slow", "slow 4 x 16", "slow 1 x 64")
		ratio(round, "batch ratio", "batch", "bare batch")
		ratio(round, "batch bound", "tables batch", "bare batch")
		ratio(round, "lanes ratio", "lanes", "1 x 64")
		ratio(round, "lanes bound", "tables, lanes", "tables 1 x 64")
	}
	return printGoals(stdout, found)
}

// printGoals prints the medians.
func printGoals(w io.Writer, found map[string][]float64) error {
	out := &printer{w: w}
	at := func(key, format string) string {
		if len(found[key]) == 0 {
			return "–"
		}
		return fmt.Sprintf(format, median(found[key]))
	}
	rate := func(key string) string { return at(key, "%.0f") }
	out.f("| SQLite | goal | now | the same by bare SQL on its tables |\n|---|--:|--:|--:|\n")
	out.f("| drain, 64 workers, ÷ bare SQL that shares transactions (jobs/s) | ≥ 0.75 | %s (%s of %s) | %s (%s) |\n",
		at("drain", "%.2f"), rate("1 x 64"), rate("bare 1 x 64"), at("drain bound", "%.2f"), rate("tables 1 x 64"))
	out.f("| drain, 4 processes × 16, × floor | ≥ 7 | %s (%s of %s) | |\n", at("procs", "%.1f"), rate("4 x 16"),
		rate("floor"))
	out.f("| on a disk whose syncs take %s more, 4 × 16 ÷ 1 × 64 | ≥ 0.9 | %s (%s of %s) | |\n", slowDiskSync,
		at("slow", "%.2f"), rate("slow 4 x 16"), rate("slow 1 x 64"))
	out.f("| from enqueuing to the start in another process, p50 | ≤ 1.5 ms | %s ms | |\n", at("latency p50", "%.2f"))
	out.f("| batch of 1,000 ÷ bare batch with events | ≥ 0.8 | %s (%s of %s) | %s (%s) |\n", at("batch ratio", "%.2f"),
		rate("batch"), rate("bare batch"), at("batch bound", "%.2f"), rate("tables batch"))
	out.f("| bytes a finished job | ≤ 500 | %s | %s |\n", at("bytes", "%.0f"),
		at("bytes of tables", "%.0f"))
	out.f("| drain of %d priorities ÷ one | ≥ 0.8 | %s (%s) | %s (%s) |\n", goalLanes, at("lanes ratio", "%.2f"),
		rate("lanes"), at("lanes bound", "%.2f"), rate("tables, lanes"))
	out.f("| `jobledger enqueue` ÷ an insert by the `sqlite3` shell | ≤ 1.5 | %s (%s ms) | |\n", at("shell", "%.1f"),
		at("shell ms", "%.1f"))
	return out.err
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
