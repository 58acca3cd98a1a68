package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// postgresTimes makes runs on a server long beside the quarter of a second that River's last batch may wait
// to be completed. Both engines there get the same number of jobs.
func postgresTimes(phase string, workers int) float64 {
	switch {
	case phase == "latency", phase == "commit":
		return 1
	case phase == "transact":
		return 4
	case phase == "batch":
		return 3
	case phase == "enqueue" && workers == 8:
		return 2
	case phase == "drain" && workers == 8:
		return 3
	case phase == "enqueue":
		return 4
	}
	return 8
}

// withOptions returns the address with name=value pairs added.
func withOptions(address string, pairs ...string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // which whoever opens it will say
	}
	values := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = values.Encode()
	return u.String()
}

// newDatabase creates a database on the server and returns its address, for connections as durable as sync
// says, and what drops it.
func newDatabase(ctx context.Context, server, sync string) (address string, drop func() error, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, errors.New("-postgres: not a URL") // the error would show the password
	}
	admin, err := sql.Open("pgx", server)
	if err != nil {
		return "", nil, err
	}
	name := "bench_" + strings.ToLower(rand.Text())
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return "", nil, errors.Join(err, admin.Close())
	}
	u.Path, u.RawPath = "/"+name, ""
	drop = func() error {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, err := admin.ExecContext(own, "DROP DATABASE "+name+" WITH (FORCE)")
		return errors.Join(err, admin.Close())
	}
	return withOptions(u.String(), "synchronous_commit", postgresSync[sync]), drop, nil
}

// slowDisk makes each sync of the write-ahead log that a connection to this database waits for take longer.
func slowDisk(ctx context.Context, address string, by time.Duration) error {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, setting := range []string{fmt.Sprintf("commit_delay = %d", by.Microseconds()), "commit_siblings = 0"} {
		const alter = `DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET %s', current_database()); END $$`
		if _, err := db.ExecContext(ctx, fmt.Sprintf(alter, setting)); err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
	}
	return nil
}

// postgresSync is the synchronous_commit of each durability.
var postgresSync = map[string]string{"full": "on", "normal": "off"}

// serverFacts asks the server what the numbers depend on.
func serverFacts(ctx context.Context, server, sync string) (facts string, err error) {
	db, err := sql.Open("pgx", withOptions(server, "synchronous_commit", postgresSync[sync]))
	if err != nil {
		return "", err
	}
	defer db.Close()
	var parts []string
	for _, name := range []string{"fsync", "synchronous_commit", "wal_sync_method", "full_page_writes",
		"shared_buffers", "max_connections"} {
		var value string
		if err := db.QueryRowContext(ctx, `SELECT current_setting($1)`, name).Scan(&value); err != nil {
			return "", fmt.Errorf("ask the server: %w", err)
		}
		parts = append(parts, name+"="+value)
	}
	var version string
	err = db.QueryRowContext(ctx, `SELECT current_setting('server_version')`).Scan(&version)
	return "PostgreSQL " + version + ", " + strings.Join(parts, ", "), err
}

// commitRate returns how many times a second the server commits one small row of one connection, measured for
// a short while: what a queue with one transaction at a time cannot exceed there.
func commitRate(ctx context.Context, server, sync string) (rate float64, err error) {
	address, drop, err := newDatabase(ctx, server, sync)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	db, err := openOne("pgx", address)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE page (n int)`); err != nil {
		return 0, err
	}
	return rateOf(func(n int) error { // the first one is also prepared
		_, err := db.ExecContext(ctx, `INSERT INTO page VALUES ($1)`, n)
		return err
	})
}
