package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// riverConns is the size of River's pool in each process.
const riverConns = 32

// riverPostgresEngine is River on PostgreSQL, which it was made for: a pgx pool, the fetch intervals of
// River's own benchmark, and the 2,000 workers of that, beside fewer. It completes jobs in batches after they
// ran. Batches are enqueued with COPY.
func riverPostgresEngine() Engine {
	return Engine{
		Name:       "river-pg",
		Module:     "github.com/riverqueue/river",
		Settings:   "pgxpool, 32 connections a process, FetchCooldown 2 ms, FetchPollInterval 20 ms, batches by InsertManyFast; completes after it has run, in batches",
		Phases:     phaseNames,
		Workers:    []int{1000, 2000},
		InProcs:    []int{64, 500},
		Postgres:   true,
		Transacts:  true,
		Times:      postgresTimes,
		Unfinished: riverUnfinished,
		Open:       openRiverPostgres,
	}
}

func openRiverPostgres(ctx context.Context, f File) (Queue, error) {
	config, err := pgxpool.ParseConfig(f.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = riverConns
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	q, err := newRiver(ctx, riverpgxv5.New(pool), f.New, func() error {
		pool.Close()
		return nil
	})
	if err != nil || !f.New {
		return q, err
	}
	if _, err := pool.Exec(ctx, ordersTable); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return &riverPostgres{q, pool}, nil
}

// riverPostgres is River with the pool of a program that has tables of its own.
type riverPostgres struct {
	*riverQueue[pgx.Tx]
	pool *pgxpool.Pool
}

func (q *riverPostgres) Transact(ctx context.Context, payloads [][]byte) error {
	jobs := make([]river.InsertManyParams, len(payloads))
	for i, p := range payloads {
		a, err := parsePayload(p)
		if err != nil {
			return err
		}
		jobs[i].Args = a
	}
	return inTransaction(ctx, q.pool, payloads, func(tx pgx.Tx) (err error) {
		if len(jobs) == 1 {
			_, err = q.client.InsertTx(ctx, tx, jobs[0].Args, nil)
		} else {
			_, err = q.client.InsertManyFastTx(ctx, tx, jobs)
		}
		return err
	})
}

// Settled: the job is there with the commit.
func (q *riverPostgres) Settled(context.Context) error { return nil }
