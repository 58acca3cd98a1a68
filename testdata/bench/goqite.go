package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"maragu.dev/goqite"
)

// goqiteEngine is goqite with the settings of its README: WAL, a busy timeout of 5 s, foreign keys on, one
// connection. Its workers call Receive and Delete themselves, which is faster than its job runner: that one
// receives in a single loop and sleeps whenever all its slots are taken. The message timeout is longer than
// the default of 5 s so that waiting for the write lock never looks like a dead consumer.
func goqiteEngine() Engine {
	return Engine{
		Name:       "goqite",
		Module:     "maragu.dev/goqite",
		Settings:   "one connection, busy_timeout 5 s, Receive and Delete a job, message timeout 1 min; keeps nothing of a finished job",
		Unfinished: `goqite`,
		Open:       openGoqite,
	}
}

// goqiteTables is a table of the shape that goqite asks its users to create: text ids and text times made by
// SQLite, a trigger that stamps every change, and an index in the order of receiving.
const goqiteTables = `
CREATE TABLE goqite (
	id       TEXT PRIMARY KEY DEFAULT ('m_' || lower(hex(randomblob(16)))),
	queue    TEXT NOT NULL,
	priority INTEGER NOT NULL DEFAULT 0,
	body     BLOB NOT NULL,
	received INTEGER NOT NULL DEFAULT 0,
	created  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	updated  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	timeout  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ'))
) STRICT;
CREATE INDEX receiving_order ON goqite (queue, priority DESC, created);
CREATE TRIGGER stamp AFTER UPDATE ON goqite BEGIN
	UPDATE goqite SET updated = strftime('%Y-%m-%dT%H:%M:%fZ') WHERE id = new.id;
END;`

type goqiteQueue struct {
	db *sql.DB
	q  *goqite.Queue
}

func openGoqite(ctx context.Context, f File) (Queue, error) {
	db, err := f.open("busy_timeout(5000)", "foreign_keys(1)")
	if err != nil {
		return nil, err
	}
	if f.New {
		if _, err := db.ExecContext(ctx, goqiteTables); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return &goqiteQueue{db: db, q: goqite.New(goqite.NewOpts{DB: db, Name: "bench", Timeout: time.Minute})}, nil
}

func (g *goqiteQueue) Close() error { return g.db.Close() }

func (g *goqiteQueue) Enqueue(ctx context.Context, payload []byte) error {
	return g.q.Send(ctx, goqite.Message{Body: payload})
}

func (g *goqiteQueue) EnqueueBatch(ctx context.Context, payloads [][]byte) error {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, p := range payloads {
		if err := g.q.SendTx(ctx, tx, goqite.Message{Body: p}); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

func (g *goqiteQueue) Drain(ctx context.Context, workers int, t *Tally) error {
	own := context.WithoutCancel(ctx) // an operation is never cut off in its middle
	_, err := together(workers, func() ([]struct{}, error) {
		for ctx.Err() == nil {
			start := time.Now()
			m, err := g.q.Receive(own)
			if err != nil && !isBusy(err) {
				return nil, err
			}
			if err != nil {
				t.Failed()
				continue
			}
			if m == nil {
				time.Sleep(time.Millisecond)
				continue
			}
			t.Ran(m.Body)
			if err := g.delete(own, m.ID, t); err != nil {
				return nil, err
			}
			t.Took(time.Since(start))
		}
		return nil, nil
	})
	return err
}

// delete deletes the message, however often that takes.
func (g *goqiteQueue) delete(ctx context.Context, id goqite.ID, t *Tally) error {
	for {
		err := g.q.Delete(ctx, id)
		if err == nil || !isBusy(err) {
			return err
		}
		t.Failed()
	}
}
