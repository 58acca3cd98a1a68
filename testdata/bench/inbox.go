package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"jobledger/commands"
	"jobledger/commands/inbox"
	"jobledger/ledger"
)

// inboxEngine is a ledger in the database of a program, which asks for jobs by rows of its inbox.
func inboxEngine() Engine {
	e := relayedEngine()
	e.Name, e.InFile = "jobledger-inbox", false
	e.Settings = "the ledger in the database of the program, whose transactions write rows of the inbox; the " +
		"worker moves them, and in the phase transact, which has none, a sweep at its end, which counts"
	e.Open = openInbox
	return e
}

// inboxQueue is a jobledgerQueue with the pool of a program that has tables of its own.
type inboxQueue struct {
	*jobledgerQueue
	pool *pgxpool.Pool
}

func openInbox(ctx context.Context, f File) (Queue, error) {
	store, err := ledger.Open(ctx, withOptions(f.URL, "sync", f.Sync))
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(f.URL)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	config.MaxConns = riverConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	q := &inboxQueue{&jobledgerQueue{service: &commands.Service{Store: store}, lanes: 1}, pool}
	if _, err := pool.Exec(ctx, ordersTable); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *inboxQueue) Close() error {
	q.pool.Close()
	return q.jobledgerQueue.Close()
}

func (q *inboxQueue) Transact(ctx context.Context, payloads [][]byte) error {
	jobs := make([]commands.Enqueue, len(payloads))
	for i, payload := range payloads {
		jobs[i] = commands.Enqueue{Queue: "bench", Payload: payload}
	}
	return inTransaction(ctx, q.pool, payloads, func(tx pgx.Tx) error {
		_, err := inbox.EnqueueMany(ctx, tx, jobs...)
		return err
	})
}

// Settled moves the rows, as no worker does in the phase transact.
func (q *inboxQueue) Settled(ctx context.Context) error {
	_, err := (&commands.Sweeper{Service: q.service, Actor: benchActor}).Sweep(ctx)
	return err
}
