package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
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
	return newRiver(ctx, riverpgxv5.New(pool), f.New, func() error {
		pool.Close()
		return nil
	})
}
