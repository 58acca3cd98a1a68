package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
)

// riverEngine is River with its SQLite driver, on one connection as the driver's documentation asks, and with the
// short fetch intervals and, in one of its drains, as many workers as River's own benchmark found best. It completes
// jobs in batches after they ran.
func riverEngine() Engine {
	return Engine{
		Name:       "river",
		Module:     "github.com/riverqueue/river",
		Settings:   "one connection, busy_timeout 5 s, FetchCooldown 2 ms, FetchPollInterval 20 ms; completes after it has run, in batches",
		Workers:    []int{1000},
		Times:      riverTimes,
		Unfinished: `river_job WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'pending')`,
		Open:       openRiver,
	}
}

// riverTimes makes drains long beside the quarter of a second that the last batch may wait to be completed.
func riverTimes(phase string, _ int) float64 {
	if phase == "drain" || phase == "procs" {
		return 3
	}
	return 1
}

// Kind makes args a job of River.
func (args) Kind() string { return "bench" }

type riverQueue struct {
	db     *sql.DB
	client *river.Client[*sql.Tx] // inserts only
}

func openRiver(ctx context.Context, f File) (_ Queue, err error) {
	db, err := f.open(1, "busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	q := &riverQueue{db: db}
	log := newTally(0).Logger()
	if f.New {
		m, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: log})
		if err == nil {
			_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("migrate: %w", err), db.Close())
		}
	}
	q.client, err = river.NewClient(riversqlite.New(db), &river.Config{Logger: log})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return q, nil
}

func (q *riverQueue) Close() error { return q.db.Close() }

func (q *riverQueue) Enqueue(ctx context.Context, payload []byte) error {
	a, err := parsePayload(payload)
	if err != nil {
		return err
	}
	_, err = q.client.Insert(ctx, a, nil)
	return err
}

func (q *riverQueue) EnqueueBatch(ctx context.Context, payloads [][]byte) error {
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

func (q *riverQueue) Drain(ctx context.Context, workers int, t *Tally) error {
	handlers := river.NewWorkers()
	river.AddWorker(handlers, &riverWorker{t: t})
	c, err := river.NewClient(riversqlite.New(q.db), &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
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
