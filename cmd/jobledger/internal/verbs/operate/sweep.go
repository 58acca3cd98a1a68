package operate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/cli/archived"
	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger"
)

func (p *Verbs) Sweep() cli.Verb {
	return cli.Verb{
		Name: "sweep", Group: cli.GroupOperate, Usage: "take back jobs whose lease has run out",
		About: "A job whose worker is silent is queued again, or failed if that was its last attempt. sweep " +
			"looks twice: what has run out must still be untouched a grace later, so that no live worker loses a " +
			"job to a jump of the clock or a slow disk. It prints how many jobs it took back, with --json each of " +
			"them. It also enqueues the jobs of schedules that are due. Workers ('jobledger work') do both " +
			"automatically.",
		Flags: []cli.Flag{
			cli.DurationFlag("every", "go on, looking every `D`, until interrupted", "", 100*time.Millisecond,
				24*time.Hour, false),
			cli.WholeFlag("while", "with --every: end when the process `PID` has ended", 0, 1, 1<<31-1, "no end"),
			cli.WholeFlag("batch", "up to `N` jobs per transaction", 100, 1, 100, ""),
			cli.DurationFlag("grace", "time between the two looks: `D`; by default two thirds of each job's lease", "",
				0, 24*time.Hour, true),
		},
		Examples: []cli.Example{
			{"jobledger sweep", "once: look, wait, look again, take back, print the count"},
			{"jobledger sweep --grace 0s", "at once; you know that their workers are gone"},
			{"jobledger sweep --every 15s", "next to workers that do not sweep"},
		},
		Exits: []int{cli.ExitBusy},
		Run:   p.sweep,
	}
}

func (p *Verbs) sweep(c *cli.Context) error {
	if c.IsSet("while") && !c.IsSet("every") {
		return cli.Usagef("--while needs --every")
	}
	service, err := p.Open(c.Context)
	if err != nil {
		return err
	}
	defer service.Store.Close()
	sweeper := &commands.Sweeper{Service: service, Batch: c.Int("batch"), SealStep: -1,
		Actor: p.ActorAs("sweeper:" + strings.TrimPrefix(p.DefaultActor(), "cli:"))}
	keeper := archived.Keeper(service, sweeper.Actor)
	sweeper.Also = keeper.Step
	if grace, given := cli.DurationValue(c, "grace"); given {
		sweeper.Grace = &grace
	}
	if every, given := cli.DurationValue(c, "every"); given {
		sweeper.SealStep = 0                             // the next sweep goes on
		sweeper.Also = func(ctx context.Context) error { // jobs are taken back whatever becomes of the archive
			err := keeper.Step(ctx)
			if err == nil || ctx.Err() != nil || errors.Is(err, ledger.ErrReplaced) {
				return err
			}
			p.Message("%v; trying again in %s", err, words.Duration(every))
			return nil
		}
		return p.sweepEvery(c.Context, sweeper, every, c.Int("while"))
	}
	keeper.Time = 10 * time.Second // the next sweep is that of another process
	ticked, err := ticker(sweeper).Tick(c.Context)
	if err != nil {
		return err
	}
	if len(ticked.Jobs) > 0 || ticked.Skipped > 0 {
		p.Message("schedules: %s enqueued, %s skipped", words.Count(int64(len(ticked.Jobs)), "job"),
			words.Count(ticked.Skipped, "tick"))
	}
	report, err := sweeper.Sweep(c.Context)
	if err != nil {
		return err
	}
	reclaimed := report.Reclaimed
	if report.Waiting > 0 {
		p.Message("%s; waiting %s for a sign of life", expiredLeases(report.Waiting),
			words.Duration(roundUp(report.Wait)))
		time.Sleep(report.Wait)
		if report, err = sweeper.Sweep(c.Context); err != nil {
			return err
		}
		reclaimed = append(reclaimed, report.Reclaimed...)
	}
	switch {
	case report.Waiting > 0: // they ran out meanwhile, or the looking had to start over
		p.Message("%s and may yet show a sign of life; sweep again for those", expiredLeases(report.Waiting))
	case len(reclaimed) == 0:
		p.Message("nothing to take back")
	}
	return p.printSwept(commands.SweepReport{Reclaimed: reclaimed})
}

// sweepEvery goes on until it is interrupted, which is its orderly end.
func (p *Verbs) sweepEvery(ctx context.Context, sweeper *commands.Sweeper, every time.Duration,
	while int) error {
	ctx, stop := context.WithCancel(cli.UntilSignalled(ctx))
	defer stop()
	if while != 0 {
		go func() {
			await.ProcessEnd(ctx, while)
			stop()
		}()
	}
	var ticking sync.WaitGroup
	defer ticking.Wait()
	defer stop()
	ticking.Go(func() {
		t := ticker(sweeper)
		t.Poll = min(every, 5*time.Second)
		t.Run(ctx, func(_ schedule.Ticked, err error) {
			if err != nil && ctx.Err() == nil {
				p.Message("%v", err)
			}
		})
	})
	var failure error
	sweeper.Run(ctx, every, func(r commands.SweepReport, err error) {
		if len(r.Reclaimed) > 0 {
			failure = errors.Join(p.printSwept(r), p.Flush())
		}
		switch code, why, _ := fault.Explain(err); {
		case err == nil || ctx.Err() != nil:
		case code == cli.ExitBusy && !errors.Is(err, ledger.ErrReplaced):
			p.Message("%s; trying again in %s", why, words.Duration(every))
		default:
			failure = err
		}
		if failure != nil {
			stop()
		}
	})
	return failure
}

// ticker looks at the schedules, as the sweeper does at the leases.
func ticker(s *commands.Sweeper) *schedule.Ticker {
	return &schedule.Ticker{Service: s.Service, Actor: s.Actor}
}

func (p *Verbs) printSwept(r commands.SweepReport) error {
	if !p.JSON {
		return p.PrintLine(strconv.Itoa(len(r.Reclaimed)))
	}
	return cli.PrintJSONOf(p.Program, r.Reclaimed, words.ToJSON)
}

func expiredLeases(n int) string {
	if n == 1 {
		return "1 lease has run out"
	}
	return strconv.Itoa(n) + " leases have run out"
}

// roundUp is d in whole seconds, for people.
func roundUp(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
