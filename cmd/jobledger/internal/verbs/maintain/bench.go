package maintain

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"jobledger/cmd/jobledger/internal/bench"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/words"
)

func benchPhaseNames() []string {
	return words.Of(bench.Phases(), func(phase bench.Phase) string { return phase.Name })
}

// Bench measures this program on the user's own disk.
func (p *Verbs) Bench() cli.Verb {
	return cli.Verb{
		Name: "bench", Group: cli.GroupLedger, Usage: "measure the queue on your own disk",
		About: "Each run makes a ledger in a temporary folder below --dir, which chooses the disk. It drives the " +
			"ledger as a Go program would, counts every execution, verifies the ledger and removes it. No other " +
			"ledger is touched. If a job ran twice or was left, the exit code is 8.\n" +
			"Phases: 'enqueue', one job per call; 'batch', 1,000 jobs per call; 'drain', jobs that are queued " +
			"already; 'latency', from the call that enqueues a job to its start by an idle worker; 'growth', a " +
			"drain next to ten times as many finished jobs; 'verify', the check of a whole ledger. Times are those " +
			"of a call, from a claim to its completion, or that latency. Syncs are the durable commits; the last " +
			"column is the disk's own rate of them.",
		Flags: []cli.Flag{
			cli.ListFlag("phase", "measure `PHASE`; may be repeated; default: all, one after the other"),
			cli.WholeFlag("workers", "workers or callers of each process", 16, 1, 1000, ""),
			cli.WholeFlag("procs", "processes on the same ledger", 1, 1, 64, ""),
			cli.WholeFlag("jobs", "jobs of a run", 0, 1, 10_000_000, "as suits the phase"),
			cli.WholeFlag("payload", "payload of a job in bytes", 100, bench.HeaderBytes, 1<<20, ""),
			&cli.StringFlag{Name: "sync", Usage: "how durable a commit is: full or normal", Value: "full"},
			&cli.StringFlag{Name: "dir", Usage: "a folder on the `DISK` to be measured",
				DefaultText: "the temporary folder"},
		},
		Examples: []cli.Example{
			{"jobledger bench --dir /var/lib", "a tour of ten seconds or so, on the disk that will hold the ledger"},
			{"jobledger bench --phase drain --workers 64 --procs 4 --jobs 50000", "four processes of 64 workers"},
			{"jobledger bench --phase drain --sync normal --json", "one object a run"},
		},
		Exits:    []int{cli.ExitDiscrepancy, cli.ExitBusy},
		Complete: map[string][]string{"phase": benchPhaseNames(), "sync": {"full", "normal"}},
		Run:      p.bench,
	}
}

func (p *Verbs) bench(c *cli.Context) error {
	runs, err := benchRuns(c)
	if err != nil {
		return err
	}
	dir := c.String("dir")
	switch info, err := os.Stat(dir); {
	case c.IsSet("db") && p.DB != os.Getenv("JOBLEDGER_DB"):
		return cli.WithHint(cli.Usagef("bench measures a ledger of its own, never that of --db"),
			"--dir says on which disk")
	case dir == "":
	case err != nil:
		return cli.Usagef("--dir: %w", err)
	case !info.IsDir():
		return cli.WithHint(cli.Usagef("--dir: %s is not a folder; it was not touched", dir),
			"name its folder")
	}
	ctx, stop := signal.NotifyContext(c.Context, // to remove the folder
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	bar := p.StartProgress("bench", int64(len(runs)))
	defer bar.Done()
	var results []bench.Result
	var wrong error
	for _, o := range runs {
		r, err := bench.Run(ctx, o)
		if ctx.Err() != nil {
			return cli.Exitf(cli.ExitUnexpected, "interrupted")
		}
		if r.Seconds == 0 && err != nil {
			return fmt.Errorf("%s: %w", o.Phase, err)
		}
		bar.Add(1)
		results = append(results, r)
		if p.JSON {
			if err := p.PrintJSON(r); err != nil {
				return err
			}
			if err := p.Flush(); err != nil {
				return err
			}
			p.Message("%s: the disk alone makes %.0f syncs of a 4 KiB page a second", o.Phase, r.DiskSyncs)
		}
		if err != nil && wrong == nil {
			wrong = benchError(err)
		}
	}
	bar.Done()
	if !p.JSON {
		if err := p.PrintTable(bench.Table(results)); err != nil {
			return err
		}
	}
	return wrong
}

func benchError(err error) error {
	if errors.Is(err, bench.ErrWrong) {
		err = cli.Exitf(cli.ExitDiscrepancy, "%w", err)
	}
	return cli.WithHint(err, "that should never happen; please report it with the output of 'jobledger version'")
}

// benchRuns reads the flags: one run per phase.
func benchRuns(c *cli.Context) (runs []bench.Options, err error) {
	if sync := c.String("sync"); sync != "full" && sync != "normal" {
		return nil, cli.Usagef("--sync: %q is neither full nor normal", sync)
	}
	names := benchPhaseNames()
	chosen := c.StringSlice("phase")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return nil, cli.WithHint(cli.Usagef("--phase: there is no %q", name),
				"a phase is one of %s", strings.Join(names, ", "))
		}
	}
	if len(chosen) == 0 {
		chosen = names
	}
	for _, name := range chosen {
		runs = append(runs, bench.Options{Phase: name, Workers: c.Int("workers"), Procs: c.Int("procs"),
			Jobs: c.Int("jobs"), Payload: c.Int("payload"), Sync: c.String("sync"), Dir: c.String("dir")})
	}
	return runs, nil
}
