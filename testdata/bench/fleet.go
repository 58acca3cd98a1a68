package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/projection"
)

// A fleet of workers with one slot each, which run commands. Each job takes two commits: one ends a job and
// claims the next one, and a heartbeat says that its command runs. Commits follow one another. So the question
// is which share of the commits that are possible the fleet needs. As many commits a second come from a tenth
// of the workers with jobs that take a tenth of the time.

const (
	fleetWorkers = 100
	fleetJob     = time.Second            // what a job of theirs takes: as much as of 1,000 workers with jobs of 10 s
	fleetBusy    = 100 * time.Millisecond // with jobs that take so long they make the commits that are possible
	fleetTime    = 10 * time.Second       // how long a fleet is measured, after everybody has had a job
)

// fleetOf returns how many jobs a second the fleet ends: of commands that take fleetJob, or, without commands,
// of jobs of fleetBusy with a heartbeat.
func fleetOf(ctx context.Context, o options, p place, inCommands bool) (perS float64, err error) {
	limit, cancel := context.WithTimeout(ctx, cellLimit)
	defer cancel()
	err = inPlace(limit, o, p, func(f File) error {
		perS, err = fleet(limit, f, inCommands)
		return err
	})
	return perS, err
}

func fleet(ctx context.Context, f File, inCommands bool) (perS float64, err error) {
	e, _ := engineNamed("jobledger-pg")
	first, err := e.Open(ctx, File{Sync: f.Sync, New: true, URL: f.Direct})
	if err != nil {
		return 0, err
	}
	const jobs = 10_000 // more than they end
	_, err = fill(ctx, first, jobs)
	if q, ok := first.(*jobledgerQueue); ok && err == nil { // so that not each worker begins with all these events
		_, err = (&commands.Sweeper{Service: q.service, Actor: benchActor}).Sweep(ctx)
	}
	if err := errors.Join(err, first.Close()); err != nil {
		return 0, fmt.Errorf("fill: %w", err)
	}
	t := newTally(jobs)
	work := func(w *worker.Worker) {
		w.Handler = worker.HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
			t.Ran(job.Payload)
			err := worker.Progress(ctx, 0, "")
			time.Sleep(fleetBusy)
			return nil, err
		})
	}
	if inCommands {
		work = func(w *worker.Worker) {
			w.Handler, w.Command = nil, &worker.Command{Path: "sleep", Args: []string{fmt.Sprint(fleetJob.Seconds())}}
			w.Hooks.Started = func(job projection.Job, _ time.Duration) { t.Ran(job.Payload) }
		}
	}
	working, end := context.WithCancel(ctx)
	defer end()
	errs := make(chan error, fleetWorkers)
	var running sync.WaitGroup
	for range fleetWorkers {
		running.Go(func() {
			q, err := openJobledger(ctx, File{Sync: f.Sync, URL: f.URL})
			if err == nil {
				q := q.(*jobledgerQueue)
				q.work = work
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
	for started() < fleetWorkers && ctx.Err() == nil && len(errs) == 0 {
		time.Sleep(askEvery)
	}
	time.Sleep(2 * time.Second) // also the last one has its job now
	from, begin := started(), time.Now()
	time.Sleep(fleetTime)
	perS = float64(started()-from) / time.Since(begin).Seconds()
	end()
	running.Wait()
	close(errs)
	for workerErr := range errs {
		err = errors.Join(err, workerErr)
	}
	return perS, err
}
