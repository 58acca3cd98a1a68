package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// cellLimit ends a run that does not end by itself.
const cellLimit = 2 * time.Minute

var errInterrupted = errors.New("interrupted")

// runRounds runs every cell once a round. A cell that fails is a result too; only an interrupt ends the
// program.
func runRounds(ctx context.Context, o options, cells []Cell, stdout, stderr io.Writer) (conditions, []Result,
	error) {
	root, err := os.MkdirTemp(o.dir, "bench-")
	if err != nil {
		return conditions{}, nil, err
	}
	defer os.RemoveAll(root)
	if root, err = filepath.Abs(root); err != nil {
		return conditions{}, nil, err
	}
	cond, err := newConditions(ctx, o)
	if err != nil {
		return cond, nil, err
	}

	var results []Result
	out := json.NewEncoder(stdout)
	for round := range o.rounds {
		rate, err := cond.measure(ctx, o, root)
		if err != nil {
			return cond, nil, err
		}
		for i := range cells {
			c := cells[(i+round*len(cells)/o.rounds)%len(cells)] // no engine always runs first
			r := runCell(ctx, c, o, root)
			if ctx.Err() != nil {
				return cond, nil, errInterrupted
			}
			r.Round, r.FsyncPerS = round+1, rate
			results = append(results, r)
			fmt.Fprintf(stderr, "round %d  %-8s %-13s %4d × %d  %8.0f jobs/s  %6.2f s  %s\n",
				r.Round, c.Phase, r.Engine, r.Workers, r.Procs, r.JobsPerS, r.Seconds, r.Failure)
			if o.json {
				if err := out.Encode(r); err != nil {
					return cond, nil, err
				}
			}
		}
	}
	return cond, results, nil
}

// runCell runs c once, in a directory or database of its own.
func runCell(ctx context.Context, c Cell, o options, root string) (r Result) {
	r = Result{Phase: c.Phase, Engine: c.Engine.Name, Workers: c.Workers, Procs: c.Procs, Jobs: c.Jobs,
		PayloadBytes: payloadBytes, Sync: o.sync}
	dir, err := os.MkdirTemp(root, c.Engine.Name+"-")
	if err != nil {
		r.Failure = err.Error()
		return r
	}
	defer os.RemoveAll(dir)
	limit, cancel := context.WithTimeout(ctx, cellLimit)
	defer cancel()
	f := File{Path: filepath.Join(dir, "queue.db"), Sync: o.sync, New: true, Transacts: c.Phase == "transact" || c.Phase == "commit"}
	if c.Engine.Postgres {
		var drop func() error
		if f.URL, drop, err = newDatabase(limit, o.postgres, o.sync); err != nil {
			r.Failure = err.Error()
			return r
		}
		defer func() {
			if err := drop(); err != nil && r.Failure == "" {
				r.Failure = err.Error()
			}
		}()
	}
	switch c.Phase {
	case "enqueue":
		err = enqueue(limit, c, f, &r)
	case "batch":
		err = batch(limit, c, f, &r)
	case "drain":
		err = drain(limit, c, f, &r)
	case "procs":
		err = drainInProcesses(limit, c, f, &r)
	case "latency":
		err = latency(limit, c, f, &r)
	case "transact":
		err = transact(limit, c, f, &r)
	case "commit":
		err = transactLatency(limit, c, f, &r)
	}
	if err != nil {
		r.Failure = err.Error()
	}
	return r
}
