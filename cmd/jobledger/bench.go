package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"
)

// benchPhases are what bench can measure, in the order of its short tour, with the jobs of a run there.
var benchPhases = []struct {
	name string
	jobs int
}{
	{"enqueue", 4000},
	{"batch", 20_000},
	{"drain", 10_000},
	{"latency", 200},
	{"growth", 2000},
	{"verify", 10_000},
}

func benchPhaseNames() (names []string) {
	for _, phase := range benchPhases {
		names = append(names, phase.name)
	}
	return names
}

// benchVerb measures this program on the user's own disk.
func benchVerb(p *program) verb {
	return verb{
		name: "bench", group: groupLedger, usage: "measure the queue on your own disk",
		about: "Each run makes a ledger in a temporary folder below --dir, which chooses the disk, drives it as a Go program would, " +
			"counts every execution, verifies the ledger and removes it. No other ledger is touched. A job that ran twice or was " +
			"left is exit 8.\n" +
			"Phases: 'enqueue', a job a call; 'batch', 1,000 jobs a call; 'drain', jobs that wait already; 'latency', from the call " +
			"that enqueues a job to its start by an idle worker; 'growth', a drain beside ten times as many finished jobs; 'verify', " +
			"the check of a whole ledger. Times are of a call, of a claim to its completion, or that latency. Syncs are the durable " +
			"commits; the disk's own rate of them stands beside.",
		flags: []cli.Flag{
			listFlag("phase", "measure `PHASE`; may be repeated; default: all, one after the other"),
			wholeFlag("workers", "workers or callers of each process", 16, 1, 1000, ""),
			wholeFlag("procs", "processes on the same ledger", 1, 1, 64, ""),
			wholeFlag("jobs", "jobs of a run", 0, 1, 10_000_000, "as suits the phase"),
			wholeFlag("payload", "payload of a job in bytes", 100, benchHeader, 1<<20, ""),
			&cli.StringFlag{Name: "sync", Usage: "how durable a commit is: full or normal", Value: "full"},
			&cli.StringFlag{Name: "dir", Usage: "the folder `DISK`, or any on the disk that is meant", DefaultText: "the temporary folder"},
		},
		examples: []example{
			{"jobledger bench --dir /var/lib", "a tour of ten seconds or so, on the disk that will hold the ledger"},
			{"jobledger bench --phase drain --workers 64 --procs 4 --jobs 50000", "four processes of 64 workers"},
			{"jobledger bench --phase drain --sync normal --json", "one object a run"},
		},
		exits: []int{exitDiscrepancy, exitBusy},
		complete: func(flag string) []string {
			switch flag {
			case "phase":
				return benchPhaseNames()
			case "sync":
				return []string{"full", "normal"}
			}
			return nil
		},
		run: p.bench,
	}
}

func (p *program) bench(c *cli.Context) error {
	plans, err := benchPlans(c)
	if err != nil {
		return err
	}
	dir := c.String("dir")
	switch info, err := os.Stat(dir); {
	case c.IsSet("db") && p.db != os.Getenv("JOBLEDGER_DB"):
		return withHint(usagef("bench measures a ledger of its own, never that of --db"), "--dir says on which disk")
	case dir == "":
	case err != nil:
		return usagef("--dir: %w", err)
	case !info.IsDir():
		return withHint(usagef("--dir: %s is not a folder; it was not touched", dir), "give the folder in which it is")
	}
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // or the folder would stay
	defer stop()
	root, err := os.MkdirTemp(dir, "jobledger-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	bar := p.startProgress("bench", int64(len(plans)))
	defer bar.done()
	var results []benchResult
	var wrong error
	for _, plan := range plans {
		r, err := plan.measure(ctx, root)
		if ctx.Err() != nil {
			return exitf(exitUnexpected, "interrupted")
		}
		if r.Seconds == 0 && err != nil {
			return fmt.Errorf("%s: %w", plan.phase, err)
		}
		bar.add(1)
		results = append(results, r)
		if p.json {
			if err := p.printJSON(r); err != nil {
				return err
			}
			if err := p.flush(); err != nil {
				return err
			}
			p.message("%s: the disk alone makes %.0f syncs of a 4 KiB page a second", plan.phase, r.fsyncs)
		}
		if err != nil && wrong == nil {
			wrong = withHint(err, "that should never be; please report it with the output of 'jobledger version'")
		}
	}
	bar.done()
	if !p.json {
		if err := p.printBench(results); err != nil {
			return err
		}
	}
	return wrong
}

func benchPlans(c *cli.Context) (plans []benchPlan, err error) {
	if sync := c.String("sync"); sync != "full" && sync != "normal" {
		return nil, usagef("--sync: %q is neither full nor normal", sync)
	}
	names := benchPhaseNames()
	chosen := c.StringSlice("phase")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return nil, withHint(usagef("--phase: there is no %q", name), "a phase is one of %s", strings.Join(names, ", "))
		}
	}
	if len(chosen) == 0 {
		chosen = names
	}
	for _, name := range chosen {
		plan := benchPlan{phase: name, workers: c.Int("workers"), procs: c.Int("procs"), jobs: c.Int("jobs"),
			payload: c.Int("payload"), sync: c.String("sync")}
		if plan.jobs == 0 {
			plan.jobs = benchPhases[slices.Index(names, name)].jobs
		}
		switch name {
		case "batch":
			plan.workers = 1
		case "verify":
			plan.workers, plan.procs = 1, 1
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// benchResult is one run. The names of its fields are for ever; what does not apply is null.
type benchResult struct {
	Phase        string   `json:"phase"`
	Engine       string   `json:"engine"`
	Workers      int      `json:"workers"` // of each process
	Procs        int      `json:"procs"`
	Jobs         int      `json:"jobs"`
	PayloadBytes int      `json:"payload_bytes"`
	Sync         string   `json:"sync"`
	Seconds      float64  `json:"seconds"`
	JobsPerS     *float64 `json:"jobs_per_s"` // null where they were paced
	P50          *float64 `json:"p50_ms"`
	P99          *float64 `json:"p99_ms"`
	Max          *float64 `json:"max_ms"`
	BytesPerJob  *float64 `json:"bytes_per_job"`
	SyncsPerJob  *float64 `json:"syncs_per_job"`
	Executions   *int     `json:"executions"`
	Left         *int     `json:"left"`

	fsyncs float64 // a second, of the disk alone, just before the run
}

func (p *program) printBench(results []benchResult) error {
	t := &table{columns: []column{{title: "PHASE"}}}
	for _, title := range []string{"WORKERS", "JOBS", "SECONDS", "JOBS/S", "P50 MS", "P99 MS", "MAX MS", "BYTES/JOB", "SYNCS/JOB", "RUN", "LEFT", "DISK SYNCS/S"} {
		t.columns = append(t.columns, column{title: title, right: true})
	}
	for _, r := range results {
		workers := fmt.Sprint(r.Workers)
		if r.Procs > 1 {
			workers = fmt.Sprintf("%d × %d", r.Procs, r.Workers)
		}
		t.add(r.Phase, workers, fmt.Sprint(r.Jobs), fmt.Sprintf("%.2f", r.Seconds), orDash("%.0f", r.JobsPerS),
			orDash("%.2f", r.P50), orDash("%.2f", r.P99), orDash("%.2f", r.Max), orDash("%.0f", r.BytesPerJob),
			orDash("%.3f", r.SyncsPerJob), orDash("%d", r.Executions), orDash("%d", r.Left), fmt.Sprintf("%.0f", r.fsyncs))
	}
	return p.printTable(t)
}

func orDash[T any](format string, v *T) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf(format, *v)
}
