package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"jobledger/commands"
)

// A fleet of workers with one slot each: -fleet. Each of their turns is one commit, which ends a job and claims
// the next one, and commits follow one another. So the question is which share of the commits that are
// possible the fleet needs. As many turns a second come from a tenth of the workers with jobs that take a
// tenth of the time.

// fleetTime is how long a fleet is measured, after everybody has had a job.
const fleetTime = 20 * time.Second

// runFleets prints for each place what fleets need and what is possible.
func runFleets(ctx context.Context, o options, stdout, stderr io.Writer) error {
	if o.postgres == "" {
		return errors.New("-fleet needs a server: -postgres URL, of a superuser")
	}
	all, err := places(o)
	if err != nil {
		return err
	}
	out := &printer{w: stdout}
	out.f("| added to a round trip | workers | a job takes | jobs/s | with jobs that take no time | needed ÷ possible |\n")
	out.f("|---|--:|--:|--:|--:|--:|\n")
	for _, p := range all {
		most, err := fleet(ctx, o, p, 0)
		if err != nil {
			return err
		}
		for _, take := range []time.Duration{10 * time.Second, time.Second} {
			rate, err := fleet(ctx, o, p, take)
			if err != nil {
				return err
			}
			out.f("| %s | %d | %s | %.1f | %.0f | %.2f |\n", p, o.fleet, take, rate, most,
				float64(o.fleet)/take.Seconds()/most)
			fmt.Fprintf(stderr, "%s, jobs of %s: done\n", p, take)
		}
	}
	return out.err
}

// fleet returns how many jobs a second o.fleet workers with one slot each end, of jobs that take so long.
func fleet(ctx context.Context, o options, p place, take time.Duration) (perS float64, err error) {
	limit, cancel := context.WithTimeout(ctx, cellLimit)
	defer cancel()
	direct, drop, err := newDatabase(limit, o.postgres, o.sync)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if p.sync > 0 {
		if err := slowDisk(limit, direct, p.sync); err != nil {
			return 0, err
		}
	}
	through, stop, err := delayed(limit, direct, p.delay)
	if err != nil {
		return 0, err
	}
	defer stop()
	e, _ := engineNamed("jobledger-pg")
	first, err := e.Open(limit, File{Sync: o.sync, New: true, URL: direct})
	if err != nil {
		return 0, err
	}
	jobs := 40_000
	if take > 0 {
		jobs = int(float64(o.fleet) * (2*fleetTime + 2*take).Seconds() / take.Seconds())
	}
	_, err = fill(limit, first, jobs)
	if q, ok := first.(*jobledgerQueue); ok && err == nil { // so that not each worker begins with all these events
		_, err = (&commands.Sweeper{Service: q.service, Actor: benchActor}).Sweep(limit)
	}
	if err := errors.Join(err, first.Close()); err != nil {
		return 0, fmt.Errorf("fill: %w", err)
	}
	t := newTally(jobs)
	t.tell = func(int, time.Time) { time.Sleep(take) } // the job
	working, end := context.WithCancel(limit)
	defer end()
	errs := make(chan error, o.fleet)
	var running sync.WaitGroup
	for range o.fleet {
		running.Go(func() {
			q, err := e.Open(limit, File{Sync: o.sync, URL: through})
			if err == nil {
				err = errors.Join(q.Drain(working, 1, t), q.Close())
			}
			errs <- err
		})
	}
	started := func() (n int) {
		for i := range t.runs {
			n += int(t.runs[i].Load())
		}
		return n
	}
	for started() < o.fleet && limit.Err() == nil && len(errs) == 0 {
		time.Sleep(askEvery)
	}
	time.Sleep(2 * time.Second) // also the last one has its job now
	from, begin := started(), time.Now()
	time.Sleep(max(fleetTime, take))
	perS = float64(started()-from) / time.Since(begin).Seconds()
	end()
	running.Wait()
	close(errs)
	for workerErr := range errs {
		err = errors.Join(err, workerErr)
	}
	return perS, err
}
