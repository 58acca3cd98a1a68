package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// The fetch intervals of River's own benchmark. A client that only inserts has them too: it notifies workers
// of new jobs no more often than the first.
const (
	riverCooldown = 2 * time.Millisecond
	riverPoll     = 20 * time.Millisecond
)

// riverEngine is River with its SQLite driver, on one connection as the driver's documentation asks, and with
// the short fetch intervals and, in one of its drains, as many workers as River's own benchmark found best.
// It completes jobs in batches after they ran.
func riverEngine() Engine {
	return Engine{
		Name:       "river",
		Module:     "github.com/riverqueue/river",
		Settings:   "one connection, busy_timeout 5 s, FetchCooldown 2 ms, FetchPollInterval 20 ms; completes after it has run, in batches",
		Workers:    []int{1000},
		Times:      riverTimes,
		Unfinished: riverUnfinished,
		Open:       openRiver,
	}
}

// riverUnfinished finds the jobs that are not finished, on either database.
const riverUnfinished = `river_job WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'pending')`

// riverTimes makes drains long beside the quarter of a second that the last batch may wait to be completed.
func riverTimes(phase string, _ int) float64 {
	if phase == "drain" || phase == "procs" {
		return 3
	}
	return 1
}

// Kind makes args a job of River.
func (args) Kind() string { return "bench" }

// riverQueue is River on either database.
type riverQueue[TTx any] struct {
	driver  riverdriver.Driver[TTx]
	client  *river.Client[TTx] // inserts only
	closing func() error
}

func openRiver(ctx context.Context, f File) (Queue, error) {
	db, err := f.open("busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	return newRiver(ctx, riversqlite.New(db), f.New, db.Close)
}

func newRiver[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], create bool,
	closing func() error) (*riverQueue[TTx], error) {
	q := &riverQueue[TTx]{driver: driver, closing: closing}
	log := newTally(0).Logger()
	if create {
		m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: log})
		if err == nil {
			_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("migrate: %w", err), closing())
		}
	}
	var err error
	q.client, err = river.NewClient(driver, &river.Config{FetchCooldown: riverCooldown,
		FetchPollInterval: riverPoll, Logger: log})
	if err != nil {
		return nil, errors.Join(err, closing())
	}
	return q, nil
}

func (q *riverQueue[TTx]) Close() error { return q.closing() }

func (q *riverQueue[TTx]) Enqueue(ctx context.Context, payload []byte) error {
	a, err := parsePayload(payload)
	if err != nil {
		return err
	}
	_, err = q.client.Insert(ctx, a, nil)
	return err
}

func (q *riverQueue[TTx]) EnqueueBatch(ctx context.Context, payloads [][]byte) error {
	jobs := make([]river.InsertManyParams, len(payloads))
	for i, p := range payloads {
		a, err := parsePayload(p)
		if err != nil {
			return err
		}
		jobs[i].Args = a
	}
	_, err := q.client.InsertManyFast(ctx, jobs)
	return err
}

func (q *riverQueue[TTx]) Drain(ctx context.Context, workers int, t *Tally) error {
	handlers := river.NewWorkers()
	river.AddWorker(handlers, &riverWorker{t: t})
	c, err := river.NewClient(q.driver, &river.Config{
		FetchCooldown:     riverCooldown,
		FetchPollInterval: riverPoll,
		Logger:            t.Logger(),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:           handlers,
	})
	if err != nil {
		return err
	}
	own := context.WithoutCancel(ctx)
	if err := c.Start(own); err != nil {
		return err
	}
	<-ctx.Done()
	stop, cancel := context.WithTimeout(own, 10*time.Second)
	defer cancel()
	return c.Stop(stop)
}

type riverWorker struct {
	river.WorkerDefaults[args]
	t *Tally
}

func (w *riverWorker) Work(_ context.Context, j *river.Job[args]) error {
	w.t.RanNumber(j.Args.N)
	return nil
}
