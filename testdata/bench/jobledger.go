package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/outbox"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
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
	e.Name, e.Postgres, e.Transacts = "jobledger-pg", true, true
	e.Settings += "; in a database, by a postgres:// address; transactions with an outbox in the same database and " +
		"its relay in the same process"
	e.Workers, e.InProcs = []int{256, 1000}, []int{64, 250}
	e.Times = postgresTimes
	return e
}

type jobledgerQueue struct {
	service *commands.Service
	lanes   int                    // of the jobs of a batch
	work    func(w *worker.Worker) // sets what its worker does; nil: it only counts
}

func openJobledger(ctx context.Context, f File) (Queue, error) {
	address := "sqlite:" + f.Path + "?sync=" + f.Sync
	if f.URL != "" {
		address = withOptions(f.URL, "sync", f.Sync)
	}
	store, err := ledger.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	q := &jobledgerQueue{service: &commands.Service{Store: store}, lanes: max(1, f.Lanes)}
	if f.URL != "" && f.Transacts {
		return withOutbox(ctx, q, f.URL)
	}
	return q, nil
}

// relayedEngine is a ledger in a file, with the outbox of a program whose tables are in a database.
func relayedEngine() Engine {
	return Engine{
		Name:       "jobledger-relayed",
		Module:     "jobledger",
		Settings:   "the ledger in an SQLite file, the outbox in the database of the program, its relay in the same process",
		Phases:     []string{},
		Postgres:   true,
		InFile:     true,
		Transacts:  true,
		Times:      postgresTimes,
		Unfinished: jobledgerEngine().Unfinished,
		Open: func(ctx context.Context, f File) (Queue, error) {
			store, err := ledger.Open(ctx, "sqlite:"+f.Path+"?sync="+f.Sync)
			if err != nil {
				return nil, err
			}
			return withOutbox(ctx, &jobledgerQueue{service: &commands.Service{Store: store}, lanes: 1}, f.URL)
		},
	}
}

// outboxQueue is a jobledgerQueue with the outbox of a program, and its relay.
type outboxQueue struct {
	*jobledgerQueue
	pool    *pgxpool.Pool
	source  *outbox.Source
	stop    context.CancelFunc
	relayed chan error
}

// withOutbox makes the tables of the program and of the outbox, and runs a relay of it. It closes q if it fails.
func withOutbox(ctx context.Context, q *jobledgerQueue, url string) (_ Queue, err error) {
	o := &outboxQueue{jobledgerQueue: q, relayed: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, q.Close())
		}
	}()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = riverConns
	if o.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	if _, err = o.pool.Exec(ctx, ordersTable); err == nil {
		err = outbox.Migrate(ctx, o.pool)
	}
	if err == nil {
		o.source, err = outbox.Open(ctx, url)
	}
	if err != nil {
		o.pool.Close()
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	o.stop = stop
	go func() { o.relayed <- (&outbox.Relay{Service: q.service, From: o.source}).Run(running) }()
	return o, nil
}

func (o *outboxQueue) Close() error {
	o.stop()
	err := <-o.relayed
	o.pool.Close()
	return errors.Join(err, o.source.Close(), o.jobledgerQueue.Close())
}

func (o *outboxQueue) Transact(ctx context.Context, payloads [][]byte) error {
	jobs := make([]commands.Enqueue, len(payloads))
	for i, payload := range payloads {
		jobs[i] = commands.Enqueue{Queue: "bench", Payload: payload}
	}
	return inTransaction(ctx, o.pool, payloads, func(tx pgx.Tx) error {
		_, err := outbox.EnqueueMany(ctx, tx, jobs...)
		return err
	})
}

// Settled waits until the outbox is empty: the relay deletes a row after its job is durable.
func (o *outboxQueue) Settled(ctx context.Context) error {
	for {
		var left bool
		err := o.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM jobledger_outbox)`).Scan(&left)
		if err != nil || !left {
			return err
		}
		time.Sleep(askEvery)
	}
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
		jobs[i] = commands.Enqueue{Queue: "bench", Payload: payload, Priority: -(i % q.lanes)}
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
	if q.work != nil {
		q.work(w)
	}
	stop := context.AfterFunc(ctx, w.Stop)
	defer stop()
	_, err := w.Run(context.WithoutCancel(ctx))
	return err
}
