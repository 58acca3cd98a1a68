package main

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// rawLedgerEngine is the floor: what three small transactions a job, each with its event, cost on bare SQL
// when nothing is checked and nothing is shared.
func rawLedgerEngine() Engine {
	return Engine{
		Name:       "raw-ledger",
		Settings:   "prepared statements on one writer connection, BEGIN IMMEDIATE, a transaction each for enqueue, claim and complete; several processes retry every 100–300 µs",
		Phases:     []string{"enqueue", "drain", "procs"},
		Unfinished: `jobs WHERE state < 2`,
		Open:       openRawLedger,
	}
}

// rawBatchEngine is the floor of the batch phase, on the same tables.
func rawBatchEngine() Engine {
	e := rawLedgerEngine()
	e.Name = "raw-batch"
	e.Settings = "the same tables and statements, all jobs and events of a batch in one transaction"
	e.Phases = []string{"batch"}
	return e
}

const rawTables = `
CREATE TABLE jobs (n INTEGER PRIMARY KEY, state INTEGER NOT NULL, payload BLOB NOT NULL) STRICT;
CREATE INDEX unfinished ON jobs (state) WHERE state < 2;
CREATE TABLE events (pos INTEGER PRIMARY KEY, job INTEGER NOT NULL, kind INTEGER NOT NULL, at INTEGER NOT NULL) STRICT;`

// The states of a job are the kinds of the events that lead there: 0 waits, 1 runs, 2 is finished. "state <
// 2" is said again where it follows, since SQLite takes a partial index only for the very words of its
// condition.
const (
	rawInsert   = `INSERT INTO jobs (state, payload) VALUES (0, ?)`
	rawNext     = `SELECT n, payload FROM jobs WHERE state = 0 AND state < 2 ORDER BY n LIMIT 1`
	rawClaim    = `UPDATE jobs SET state = 1 WHERE n = ?`
	rawComplete = `UPDATE jobs SET state = 2 WHERE n = ?`
	rawEvent    = `INSERT INTO events (job, kind, at) VALUES (?, ?, ?)`
	rawBegin    = `BEGIN IMMEDIATE`
	rawCommit   = `COMMIT`
	rawRollback = `ROLLBACK`
)

type rawLedger struct {
	db   *sql.DB
	conn *sql.Conn

	mu    sync.Mutex // one transaction at a time on conn
	stmts map[string]*sql.Stmt
}

func openRawLedger(ctx context.Context, f File) (_ Queue, err error) {
	db, err := f.open()
	if err != nil {
		return nil, err
	}
	q := &rawLedger{db: db, stmts: map[string]*sql.Stmt{}}
	if q.conn, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if f.New {
		if _, err := q.conn.ExecContext(ctx, rawTables); err != nil {
			return nil, errors.Join(err, q.Close())
		}
	}
	for _, text := range []string{rawInsert, rawNext, rawClaim, rawComplete, rawEvent, rawBegin, rawCommit,
		rawRollback} {
		if q.stmts[text], err = q.conn.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(err, q.Close())
		}
	}
	return q, nil
}

func (q *rawLedger) Close() error {
	for _, s := range q.stmts {
		_ = s.Close()
	}
	return errors.Join(q.conn.Close(), q.db.Close())
}

// write runs fn in one transaction.
func (q *rawLedger) write(fn func() error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		_, err := q.stmts[rawBegin].Exec()
		if err == nil {
			break
		}
		if !isBusy(err) {
			return err
		}
		time.Sleep(100*time.Microsecond + rand.N(200*time.Microsecond))
	}
	if err := fn(); err != nil {
		_, rollback := q.stmts[rawRollback].Exec()
		return errors.Join(err, rollback)
	}
	_, err := q.stmts[rawCommit].Exec()
	return err
}

// event records that job n has come to state kind.
func (q *rawLedger) event(n int64, kind int) error {
	_, err := q.stmts[rawEvent].Exec(n, kind, time.Now().UnixMicro())
	return err
}

func (q *rawLedger) insert(payload []byte) error {
	res, err := q.stmts[rawInsert].Exec(payload)
	if err != nil {
		return err
	}
	n, err := res.LastInsertId()
	if err != nil {
		return err
	}
	return q.event(n, 0)
}

func (q *rawLedger) Enqueue(_ context.Context, payload []byte) error {
	return q.write(func() error { return q.insert(payload) })
}

func (q *rawLedger) EnqueueBatch(_ context.Context, payloads [][]byte) error {
	return q.write(func() error {
		for _, p := range payloads {
			if err := q.insert(p); err != nil {
				return err
			}
		}
		return nil
	})
}

func (q *rawLedger) Drain(ctx context.Context, workers int, t *Tally) error {
	_, err := together(workers, func() ([]struct{}, error) {
		for ctx.Err() == nil {
			start := time.Now()
			n, payload, err := q.claim()
			if errors.Is(err, sql.ErrNoRows) {
				time.Sleep(time.Millisecond)
				continue
			}
			if err != nil {
				return nil, err
			}
			t.Ran(payload)
			if err := q.complete(n); err != nil {
				return nil, err
			}
			t.Took(time.Since(start))
		}
		return nil, nil
	})
	return err
}

func (q *rawLedger) claim() (n int64, payload []byte, err error) {
	err = q.write(func() error {
		if err := q.stmts[rawNext].QueryRow().Scan(&n, &payload); err != nil {
			return err
		}
		if _, err := q.stmts[rawClaim].Exec(n); err != nil {
			return err
		}
		return q.event(n, 1)
	})
	return n, payload, err
}

func (q *rawLedger) complete(n int64) error {
	return q.write(func() error {
		if _, err := q.stmts[rawComplete].Exec(n); err != nil {
			return err
		}
		return q.event(n, 2)
	})
}
