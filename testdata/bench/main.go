// Command bench compares jobledger with other durable queues on SQLite, and on PostgreSQL if it is given a
// server, at the same durability, on one machine.
//
//	go run . -rounds 5                      every engine, every phase, a Markdown report
//	go run . -rounds 5 -json > runs.jsonl   the same, one object a run
//	go run . -engines raw-ledger,river -phases drain -jobs 20000
//	go run . -dir /mnt/disk -sync normal
//	go run . -postgres postgres://me@host/postgres -engines river-pg,jobledger-pg
//	go run . -postgres postgres://me@host/postgres -network -rounds 5
//	go run . -goals -rounds 4 -postgres postgres://me@host/postgres
//
// It is a module of its own, so that no other queue enters the product's dependencies.
//
// Each run gets a fresh directory and file, in WAL mode with synchronous=FULL unless told otherwise, or a
// fresh database with synchronous_commit on, which is dropped afterwards; jobs with a payload of 100 bytes;
// and workers that do nothing but count. Phases:
//
//	enqueue   one job a call, 8 and 64 callers
//	batch     1,000 jobs a call, one caller
//	drain     jobs that wait already, 8 and 64 workers in one process
//	procs     the same with 4 processes of 16 workers on one file or database
//	transact  a row of the program's own and its job in one transaction, until workers can see the job, 8 and 64
//	          callers, and one with 1,000 rows a transaction; on PostgreSQL
//	commit    from the commit of such a transaction to the start of the handler, one at a time, same process
//	latency   from the call that enqueues a job to the start of its handler, one job at a time, in the same process and in
//	          another one; for engines that wake their workers
//
// A drain is timed from the start of its workers until no unfinished job is left in the file, so that an
// engine which completes later than it executes is charged for that. Every execution is counted by the number
// in the payload: a job that ran twice or was left is reported, never hidden. What an engine keeps of a
// finished job is "bytes a job"; engines that delete finished jobs keep nothing. On PostgreSQL it is measured
// after VACUUM FULL.
//
// With -network, drains on PostgreSQL are compared with River's over networks with a delay of 0, 0.5 and 2 ms a
// round trip, which a proxy adds, and on a disk whose syncs take 1 ms more, which the server's commit_delay
// adds. Both engines drain one right after the other; five rounds take about half an hour.
//
// With -goals, the goals of speed are measured instead, and printed as one table: those on SQLite next to what
// bare SQL reaches that shares transactions as jobledger does, on tables of its own (raw-grouped) and on those
// of jobledger (raw-schema); on a disk with slow syncs; from the command line, for which it must run in
// testdata/bench; and, with -postgres, drains divided by River's, a fleet of workers, bytes and connections. A
// round takes about five minutes, one without a server about 40 seconds.
//
// Rounds are interleaved: each round runs everything once, in an order that rotates. Ratios are medians of
// the ratios within a round; "raw-ledger" with 8 workers is 1.00 (in the batch phase "raw-batch" is), and on
// PostgreSQL "river-pg" with as many workers as it was fastest with in that phase. Five rounds take about
// five minutes on two cores with a disk of 5,000 fsyncs a second, and as long again on PostgreSQL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// options are the flags.
type options struct {
	rounds      int
	jobs        int
	batches     int
	procs       int
	procWorkers int
	sync        string
	dir         string
	engines     string
	postgres    string
	latency     int
	phases      string
	json        bool
	network     bool
	goals       bool
	shapes      string
	delays      string
	syncs       string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 1 && args[0] == childArg {
		return drainAsChild(ctx, stdin, stdout)
	}
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.network {
		return compareOverNetwork(ctx, o, stdout, stderr)
	}
	if o.goals {
		return measureGoals(ctx, o, stdout, stderr)
	}
	cells, err := plan(o)
	if err != nil {
		return err
	}
	if o.engines == "" && o.postgres == "" {
		fmt.Fprintln(stderr, "bench: the engines on PostgreSQL are left out; -postgres URL names a server for them")
	}
	cond, results, err := runRounds(ctx, o, cells, stdout, stderr)
	if err != nil || o.json {
		return err
	}
	return report(stdout, o, cond, cells, results)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&o.rounds, "rounds", 5, "interleaved rounds")
	fs.IntVar(&o.jobs, "jobs", 2500, "jobs of a run; some engines get a multiple, batch runs have their own")
	fs.IntVar(&o.batches, "batches", 10, "batches of 1,000 in a batch run")
	fs.IntVar(&o.procs, "procs", 4, "processes in the procs phase")
	fs.IntVar(&o.procWorkers, "proc-workers", 16, "workers of each of these processes")
	fs.StringVar(&o.sync, "sync", "full", "durability: full or normal")
	fs.StringVar(&o.dir, "dir", "",
		"where the files go, which chooses the disk (default: the system's temporary directory)")
	fs.StringVar(&o.engines, "engines", "", "engines to run, separated by commas (default: all)")
	fs.StringVar(&o.postgres, "postgres", "",
		"a PostgreSQL server, by the URL of a user who may create databases there")
	fs.IntVar(&o.latency, "latency", 200, "jobs in a latency run")
	fs.StringVar(&o.phases, "phases", strings.Join(phaseNames, ","), "phases to run, separated by commas")
	fs.BoolVar(&o.json, "json", false, "one JSON object a run instead of the report")
	fs.BoolVar(&o.network, "network", false, "compare drains with River's over a network instead")
	fs.BoolVar(&o.goals, "goals", false, "measure the goals of speed instead")
	fs.StringVar(&o.shapes, "shapes", "", "with -network: processes x workers, separated by commas (default: all)")
	fs.StringVar(&o.delays, "delays", "0,0.5,2", "with -network: milliseconds added to a round trip")
	fs.StringVar(&o.syncs, "syncs", "0,1", "with -network: milliseconds added to a sync of the server")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case !slices.Contains([]string{"full", "normal"}, o.sync):
		return o, fmt.Errorf("-sync %q: full or normal", o.sync)
	case min(o.rounds, o.jobs, o.batches, o.procs, o.procWorkers, o.latency) < 1:
		return o, errors.New("-rounds, -jobs, -batches, -procs, -proc-workers and -latency must be at least 1")
	}
	return o, nil
}
