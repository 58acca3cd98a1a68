package main

import (
	"context"
	"fmt"
	"os"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"

	"github.com/oklog/ulid/v2"
)

// jobledgerEngine is jobledger as a Go program embeds it.
func jobledgerEngine() Engine {
	return Engine{
		Name:     "jobledger",
		Module:   "jobledger",
		Settings: "the library as a Go program embeds it: commands.Service and worker.Worker with their defaults, full history, all guards",
		Phases:   phaseNames,
		Times: func(phase string, _ int) float64 {
			if phase == "batch" || phase == "latency" {
				return 1
			}
			return 6
		},
		Unfinished: `(SELECT n FROM jobs WHERE lane IS NOT NULL UNION ALL SELECT n FROM jobs WHERE lease_expires_at IS NOT NULL) AS unfinished`,
		Open:       openJobledger,
	}
}

// jobledgerPostgresEngine is the same on PostgreSQL.
func jobledgerPostgresEngine() Engine {
	e := jobledgerEngine()
	e.Name, e.Postgres = "jobledger-pg", true
	e.Settings += "; in a database, by a postgres:// address"
	e.Workers, e.InProcs = []int{256, 1000}, []int{64, 250}
	e.Times = postgresTimes
	return e
}

type jobledgerQueue struct{ service *commands.Service }

func openJobledger(ctx context.Context, f File) (Queue, error) {
	address := "sqlite:" + f.Path + "?sync=" + f.Sync
	if f.URL != "" {
		address = withOptions(f.URL, "sync", f.Sync)
	}
	store, err := ledger.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	return &jobledgerQueue{&commands.Service{Store: store}}, nil
}

func (q *jobledgerQueue) Close() error { return q.service.Store.Close() }

const benchActor = "bench:jobledger"

func (q *jobledgerQueue) Enqueue(ctx context.Context, payload []byte) error {
	_, err := q.service.Enqueue(ctx, benchActor, commands.Enqueue{Queue: "bench", Payload: payload})
	return err
}

func (q *jobledgerQueue) EnqueueBatch(ctx context.Context, payloads [][]byte) error {
	jobs := make([]commands.Enqueue, len(payloads))
	for i, payload := range payloads {
		jobs[i] = commands.Enqueue{Queue: "bench", Payload: payload}
	}
	_, err := q.service.Enqueue(ctx, benchActor, jobs...)
	return err
}

// Drain is one Worker with as many slots, as a program would run it. The process is named, not the slot.
func (q *jobledgerQueue) Drain(ctx context.Context, workers int, t *Tally) error {
	w := &worker.Worker{
		Service: q.service,
		Process: event.Worker{Name: fmt.Sprintf("bench-%d", os.Getpid()), Boot: ulid.Make().String(),
			Host: "localhost", PID: os.Getpid()},
		Queues: []string{"bench"},
		Slots:  workers,
		Handler: worker.HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
			t.Ran(job.Payload)
			return nil, nil
		}),
	}
	stop := context.AfterFunc(ctx, w.Stop)
	defer stop()
	_, err := w.Run(context.WithoutCancel(ctx))
	return err
}
