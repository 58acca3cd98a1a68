package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/mikestefanello/backlite"
)

// backliteEngine is backlite with the settings of its README: WAL, a busy timeout of 5 s, tasks released
// after 10 minutes, no retention of completed tasks. One connection is not what the README says, but faster
// and steadier than many. When its dispatcher finds no free worker it sleeps for 100 ms, so with few workers
// it waits more than it works; with 1,000 it does not.
func backliteEngine() Engine {
	return Engine{
		Name:       "backlite",
		Module:     "github.com/mikestefanello/backlite",
		Settings:   "one connection, busy_timeout 5 s, ReleaseAfter 10 min, no retention, so it keeps nothing of a finished job",
		Workers:    []int{1000},
		Times:      backliteTimes,
		Unfinished: `backlite_tasks`,
		Open:       openBacklite,
	}
}

func backliteTimes(phase string, workers int) float64 {
	switch {
	case phase == "drain" && workers == 8:
		return 0.1 // it runs 8 jobs in 100 ms
	case phase == "drain" && workers == 1000:
		return 2
	}
	return 1
}

// Config makes args a task of backlite.
func (args) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "bench", MaxAttempts: 1, Timeout: time.Minute}
}

type backliteQueue struct {
	db     *sql.DB
	client *backlite.Client // adds; its dispatcher never starts
}

func openBacklite(_ context.Context, f File) (Queue, error) {
	db, err := f.open("busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	q := &backliteQueue{db: db}
	if q.client, err = q.newClient(1, newTally(0)); err == nil && f.New {
		err = q.client.Install()
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return q, nil
}

func (b *backliteQueue) newClient(workers int, t *Tally) (*backlite.Client, error) {
	c, err := backlite.NewClient(backlite.ClientConfig{
		DB:           b.db,
		Logger:       t.Logger(),
		NumWorkers:   workers,
		ReleaseAfter: 10 * time.Minute,
	})
	if err != nil {
		return nil, err
	}
	c.Register(backlite.NewQueue(func(_ context.Context, a args) error {
		t.RanNumber(a.N)
		return nil
	}))
	return c, nil
}

func (b *backliteQueue) Close() error { return b.db.Close() }

func (b *backliteQueue) Enqueue(ctx context.Context, payload []byte) error {
	return b.EnqueueBatch(ctx, [][]byte{payload})
}

func (b *backliteQueue) EnqueueBatch(ctx context.Context, payloads [][]byte) error {
	tasks := make([]backlite.Task, len(payloads))
	for i, p := range payloads {
		a, err := parsePayload(p)
		if err != nil {
			return err
		}
		tasks[i] = a
	}
	_, err := b.client.Add(tasks...).Ctx(ctx).Save()
	return err
}

func (b *backliteQueue) Drain(ctx context.Context, workers int, t *Tally) error {
	c, err := b.newClient(workers, t)
	if err != nil {
		return err
	}
	c.Start(context.WithoutCancel(ctx))
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if !c.Stop(stop) {
		return errors.New("backlite: workers did not stop")
	}
	return nil
}
