// Shop is a web shop with a database of its own: it takes orders over HTTP, and ships each of them once.
//
//	go run ./testdata/example -shop shop.db -jobs jobs.db -listen 127.0.0.1:8080
//	curl -d '{"number": 17, "to": "Ada"}' http://127.0.0.1:8080/orders
//	curl http://127.0.0.1:8080/parcels
//
// An order and its job are written in one transaction, and a parcel in the transaction that records that its
// job has made it. So the shop may be killed at any moment: no order that was acknowledged is lost, and none
// is shipped twice.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"jobledger/commands"
	"jobledger/commands/outbox"
	"jobledger/commands/worker"
	"jobledger/ledger"
)

// Order is what a customer sends, and the payload of the job that ships it.
type Order struct {
	Number int
	To     string
}

// Shop is the program's own database.
type Shop struct{ db *sql.DB }

// openShop opens a file, or a PostgreSQL database, and makes the tables.
func openShop(ctx context.Context, dsn string) (*Shop, error) {
	const options = "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_txlock=immediate"
	driver, address := "sqlite", "file:"+dsn+options
	if ledger.IsServerAddress(dsn) {
		driver, address = "pgx", dsn
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		return nil, err
	}
	for _, table := range []string{
		`CREATE TABLE IF NOT EXISTS orders (number integer PRIMARY KEY, recipient text NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS parcels (number integer NOT NULL)`,
	} {
		if _, err := db.ExecContext(ctx, table); err != nil {
			return nil, err
		}
	}
	return &Shop{db}, outbox.Migrate(ctx, db)
}

// within runs fn in a transaction.
func (s *Shop) within(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// take writes an order and asks for its job: both, or neither.
func (s *Shop) take(ctx context.Context, o Order) error {
	payload, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return s.within(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO orders (number, recipient) VALUES ($1, $2)`, o.Number, o.To)
		if err != nil {
			return err
		}
		_, err = outbox.Enqueue(ctx, tx, commands.Enqueue{Queue: "ship", Payload: payload})
		return err
	})
}

// ship makes the parcel of an order, once, however often the job runs.
func (s *Shop) ship(ctx context.Context, job worker.Job[Order]) (any, error) {
	if job.Args.To == "" {
		return nil, &worker.Error{Code: "no_recipient", NoRetry: true}
	}
	return nil, s.within(ctx, func(tx *sql.Tx) error {
		first, err := worker.Once(ctx, tx, job.Job)
		if err != nil || !first {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO parcels (number) VALUES ($1)`, job.Args.Number)
		return err
	})
}

// jobs are the handlers of the shop's jobs.
func (s *Shop) jobs() *worker.Mux {
	mux := new(worker.Mux)
	worker.Handle(mux, "ship", s.ship)
	return mux
}

// pages are the shop's HTTP handlers.
func (s *Shop) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		var o Order
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := s.take(r.Context(), o); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		} else {
			w.WriteHeader(http.StatusCreated)
		}
	})
	mux.HandleFunc("GET /parcels", func(w http.ResponseWriter, r *http.Request) {
		var n int
		if err := s.db.QueryRowContext(r.Context(), `SELECT count(*) FROM parcels`).Scan(&n); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		} else {
			fmt.Fprintln(w, n)
		}
	})
	return mux
}

// run works until ctx ends. Then the shop takes no more orders, finishes the jobs that run, and returns.
func run(ctx context.Context, dsn, jobs, address string) error {
	shop, err := openShop(ctx, dsn)
	if err != nil {
		return err
	}
	defer shop.db.Close()
	store, err := ledger.Open(ctx, jobs)
	if err != nil {
		return err
	}
	defer store.Close()
	service := &commands.Service{Store: store}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listens at", listener.Addr())
	ctx, end := context.WithCancel(ctx)
	defer end()
	server := &http.Server{Handler: shop.pages(), ReadHeaderTimeout: time.Minute}
	w := &worker.Worker{Service: service, Handler: shop.jobs(), Slots: 4, Lease: *lease,
		SweepEvery: min(*lease, 15*time.Second), Log: slog.Default()}
	relay := &outbox.Relay{Service: service, From: shop.db, Log: slog.Default()}
	var parts sync.WaitGroup
	errs := make(chan error, 3)
	part := func(fn func() error) { parts.Go(func() { errs <- fn() }) }
	part(func() error { return server.Serve(listener) })
	part(func() error { return relay.Run(ctx) })
	part(func() error { _, err := w.Run(context.WithoutCancel(ctx)); return err })
	select {
	case <-ctx.Done():
	case err = <-errs: // one part has ended early: end the others
	}
	end()
	w.Stop()
	err = errors.Join(err, server.Shutdown(context.WithoutCancel(ctx)))
	parts.Wait()
	return err
}

var lease = flag.Duration("lease", time.Minute, "after a kill, a job runs again when its lease is over")

func main() {
	dsn := flag.String("shop", "shop.db", "the shop's database: a file, or postgres://…")
	jobs := flag.String("jobs", "jobs.db", "the ledger, likewise")
	address := flag.String("listen", "127.0.0.1:8080", "where the shop listens")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dsn, *jobs, *address); err != nil {
		slog.Error("shop", "error", err)
		os.Exit(1)
	}
}
