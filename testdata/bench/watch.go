package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"time"
)

const (
	watchEvery = 2 * time.Millisecond   // how exactly the end of a drain is known
	askEvery   = 5 * time.Millisecond   // the same of a server, which answers with the CPU that it works with
	lookEvery  = 500 * time.Millisecond // how often progress is looked at, at least
	stallAfter = 5 * time.Second        // a drain without progress for so long has ended with jobs left
)

// watcher looks at an engine's file or database from outside, with a connection of its own.
type watcher struct {
	db         *sql.DB
	unfinished string
	server     bool
	compact    bool // frees space before the size is measured
	every      time.Duration
	before     int64 // Bytes without a job
}

func watch(f File, e Engine) (*watcher, error) {
	if f.URL != "" && !e.InFile {
		// Its statements are prepared while the tables are empty; they must not stay with what is best then.
		db, err := openOne("pgx", withOptions(cmp.Or(f.Direct, f.URL), "search_path", "jobledger,public", "enable_seqscan", "off",
			"max_parallel_workers_per_gather", "0", "application_name", "watcher"))
		return &watcher{db: db, unfinished: e.Unfinished, server: true, compact: !f.AsItStands,
			every: askEvery}, err
	}
	v := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	db, err := openOne("sqlite", (&url.URL{Scheme: "file", Path: f.Path, RawQuery: v.Encode()}).String())
	return &watcher{db: db, unfinished: e.Unfinished, every: watchEvery}, err
}

func (w *watcher) Close() error { return w.db.Close() }

// Left returns how many jobs are not finished.
func (w *watcher) Left(ctx context.Context) (n int, err error) {
	err = w.db.QueryRowContext(ctx, `SELECT count(*) FROM `+w.unfinished).Scan(&n)
	return n, err
}

// userTables are the tables of a database that are not the server's own.
const userTables = `FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
	WHERE c.relkind = 'r' AND s.nspname NOT IN ('pg_catalog', 'information_schema')`

// Compact frees what dead rows take up in a database, so that Bytes says what is kept, unless the run is to
// leave them. A file is left as it is.
func (w *watcher) Compact(ctx context.Context) error {
	if !w.compact {
		return nil
	}
	var names []string
	rows, err := w.db.QueryContext(ctx, `SELECT format('%I.%I', s.nspname, c.relname) `+userTables)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := w.db.ExecContext(ctx, `VACUUM FULL `+name); err != nil {
			return err
		}
	}
	return nil
}

// Bytes returns the size of what the file holds, without free pages, or of the tables and indexes in a
// database.
func (w *watcher) Bytes(ctx context.Context) (n int64, err error) {
	if w.server {
		err = w.db.QueryRowContext(ctx, `SELECT sum(pg_total_relation_size(c.oid))::bigint `+userTables).Scan(&n)
		return n, err
	}
	err = w.db.QueryRowContext(ctx, `SELECT (p.page_count - f.freelist_count) * s.page_size
		FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`).Scan(&n)
	return n, err
}

// untilDrained waits until no job is unfinished, or until nothing has moved for stallAfter, and returns the
// moment of the last change. To look takes from those who work, most of all on a server, so it is done when
// there may be something new to see: after a part of the time that the rest should take at the pace so far.
func (w *watcher) untilDrained(ctx context.Context) (time.Time, error) {
	began, first, left, moved := time.Now(), 0, -1, time.Now()
	for {
		n, err := w.Left(ctx)
		if err != nil {
			return moved, fmt.Errorf("count unfinished jobs: %w", err)
		}
		now := time.Now()
		switch {
		case n == 0:
			return now, nil
		case n != left:
			first, left, moved = max(first, n), n, now
		case now.Sub(moved) >= stallAfter:
			return moved, nil
		}
		wait := w.every
		if done := first - n; done > 0 {
			rest := time.Duration(float64(now.Sub(began)) / float64(done) * float64(n))
			wait = min(max(wait, rest/4), lookEvery)
		}
		time.Sleep(wait)
	}
}
