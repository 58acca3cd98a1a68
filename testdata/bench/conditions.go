package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
)

// conditions are what the numbers depend on beside the engines.
type conditions struct {
	cores   int
	goes    string
	system  string
	sqlite  string
	modules map[string]string // version of each module in this program
	fsyncs  []float64         // of each round
	server  string            // what the PostgreSQL server says of itself; "" if there is none
	commits []float64         // it makes a second, in each round
}

func newConditions(ctx context.Context, o options) (conditions, error) {
	c := conditions{cores: runtime.NumCPU(), goes: runtime.Version(), system: runtime.GOOS + "/" +
		runtime.GOARCH,
		modules: map[string]string{}}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			c.modules[m.Path] = m.Version
			if m.Replace != nil {
				c.modules[m.Path] = "from this repository"
			}
		}
	}
	var err error
	if c.sqlite, err = sqliteVersion(ctx); err == nil && o.postgres != "" {
		c.server, err = serverFacts(ctx, o.postgres, o.sync)
	}
	return c, err
}

// measure finds out how fast the disk and the server are now, and returns the syncs a second of the disk.
func (c *conditions) measure(ctx context.Context, o options, root string) (fsyncs float64, err error) {
	if fsyncs, err = fsyncRate(root); err != nil {
		return 0, fmt.Errorf("measure fsync: %w", err)
	}
	c.fsyncs = append(c.fsyncs, fsyncs)
	if o.postgres != "" {
		commits, err := commitRate(ctx, o.postgres, o.sync)
		if err != nil {
			return 0, fmt.Errorf("measure commits: %w", err)
		}
		c.commits = append(c.commits, commits)
	}
	return fsyncs, nil
}

func (c conditions) print(w io.Writer, o options) {
	fmt.Fprintf(w, "- machine: %d cores, %s, %s\n", c.cores, c.system, c.goes)
	fmt.Fprintf(w, "- SQLite %s (modernc.org/sqlite %s), WAL, synchronous=%s\n", c.sqlite,
		c.modules["modernc.org/sqlite"], o.sync)
	fmt.Fprintf(w,
		"- the disk alone: %.0f fsyncs of an overwritten 4 KiB page a second (%.0f–%.0f over the rounds)\n",
		median(c.fsyncs), slices.Min(c.fsyncs), slices.Max(c.fsyncs))
	if c.server != "" {
		fmt.Fprintf(w, "- %s; pgx %s\n", c.server, c.modules["github.com/jackc/pgx/v5"])
		fmt.Fprintf(w,
			"- the server alone: %.0f commits of one row by one connection a second (%.0f–%.0f over the rounds)\n",
			median(c.commits), slices.Min(c.commits), slices.Max(c.commits))
	}
	fmt.Fprintf(w,
		"- %d interleaved rounds, %d jobs a run, times the factor of the engine (batch: %d), payload %d bytes\n",
		o.rounds, o.jobs, o.batches*batchSize, payloadBytes)
}
