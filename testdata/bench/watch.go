package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"time"
)

const (
	watchEvery = 2 * time.Millisecond   // how exactly the end of a drain is known
	countEvery = 100 * time.Millisecond // how often progress is looked at
	stallAfter = 5 * time.Second        // a drain without progress for so long has ended with jobs left
)

// watcher looks at an engine's file from outside, with a connection that cannot write.
type watcher struct {
	db         *sql.DB
	unfinished string
}

func watch(f File, e Engine) (*watcher, error) {
	v := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: f.Path, RawQuery: v.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &watcher{db: db, unfinished: e.Unfinished}, nil
}

func (w *watcher) Close() error { return w.db.Close() }

// Left returns how many jobs are not finished.
func (w *watcher) Left(ctx context.Context) (n int, err error) {
	err = w.db.QueryRowContext(ctx, `SELECT count(*) FROM `+w.unfinished).Scan(&n)
	return n, err
}

// Bytes returns the size of what the file holds, without free pages.
func (w *watcher) Bytes(ctx context.Context) (n int64, err error) {
	err = w.db.QueryRowContext(ctx, `SELECT (p.page_count - f.freelist_count) * s.page_size
		FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`).Scan(&n)
	return n, err
}

// untilDrained waits until no job is unfinished, or until nothing has moved for stallAfter, and returns the moment of
// the last change.
func (w *watcher) untilDrained(ctx context.Context) (time.Time, error) {
	exists := `SELECT EXISTS (SELECT 1 FROM ` + w.unfinished + `)`
	left, moved, counted := -1, time.Now(), time.Time{}
	for {
		var some bool
		if err := w.db.QueryRowContext(ctx, exists).Scan(&some); err != nil {
			return moved, fmt.Errorf("look for unfinished jobs: %w", err)
		}
		if !some {
			return time.Now(), nil
		}
		if time.Since(counted) >= countEvery {
			n, err := w.Left(ctx)
			if err != nil {
				return moved, fmt.Errorf("count unfinished jobs: %w", err)
			}
			counted = time.Now()
			if n != left {
				left, moved = n, counted
			}
			if time.Since(moved) >= stallAfter {
				return moved, nil
			}
		}
		time.Sleep(watchEvery)
	}
}
