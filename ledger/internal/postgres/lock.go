package postgres

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/ledger/internal/engine"
	"jobledger/schema"
)

// Locks keep writers apart, from BEGIN to the end of the transaction:
//
//   - A lock of the table write_lock, which excludes itself and nothing else. It takes the right to write.
//   - The ledger's advisory lock, by which programs older than schema 15 keep each other out. Anybody who may
//     connect can hold it. So a writer only tries to get it, and waits for it only where its holder may
//     write, too: that may be such a program. It is shared: at the end of a transaction the server lets go of
//     it a little later than of the table, so that the next writer would find it taken.
//
// Even two writers at once would do no harm, since the second one to append finds its pos taken. That costs a
// transaction, though, which runs again.
//
// Programs older than schema 15 migrate under a lock of the whole database, as migrate does from such
// schemas.

// lockTable has the mode that excludes itself and takes the server no more than an advisory lock does.
const lockTable = `LOCK TABLE write_lock IN SHARE UPDATE EXCLUSIVE MODE`

// selectOlderWriter finds out whether a session that may append holds the advisory lock $1.
const selectOlderWriter = `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid::bigint = $1::bigint >> 32 AND l.objid::bigint = $1::bigint & 4294967295
    AND coalesce(has_table_privilege(a.usesysid, 'events', 'INSERT'), false)`

// selectAlone tries to get the advisory lock, and says which programs may write.
const selectAlone = `SELECT pg_try_advisory_xact_lock_shared($1),
    coalesce((SELECT writable_from FROM compatibility), 0)`

// selectRepair waits for the advisory lock, where the tables of the others are missing.
const selectRepair = `SELECT true, 0::bigint FROM pg_advisory_xact_lock($1)`

// beginLocked begins a transaction, takes the lock, for which it waits for at most wait, and reads the head.
// If a table of the lock is missing it takes the advisory lock only.
func (p *Engine) beginLocked(
	ctx context.Context, wait time.Duration, queries []engine.WarmupQuery, missing bool,
) (at engine.Head, err error) {
	c := connOf(p.writer)
	batch := &pgx.Batch{}
	batch.Queue(`BEGIN`)
	timeout := lockTimeout(wait)
	if timeout != c.lockTimeout {
		batch.Queue(`SELECT set_config('lock_timeout', $1, false)`, strconv.FormatInt(timeout, 10))
	}
	alone := selectAlone
	if missing {
		alone = selectRepair
	} else {
		batch.Queue(lockTable)
	}
	before := batch.Len()
	batch.Queue(alone, p.lockKey)
	var isAlone bool
	var writableFrom int64
	c.expectAnswer(max(wait, 0) + min(p.AnswerTime, lockAnswerTime))
	c.lockTimeout = unknownTimeout // a transaction that is rolled back takes it back
	at, err = c.head(ctx, batch, queries, before, func(results pgx.BatchResults) error {
		return results.QueryRow().Scan(&isAlone, &writableFrom)
	})
	switch {
	case err == nil && writableFrom > int64(p.newest):
		return at, p.tooOld("written", writableFrom)
	case err == nil && !isAlone:
		at, err = p.waitForOlder(ctx, wait, queries)
	}
	if err == nil {
		c.lockTimeout = timeout
	}
	return at, err
}

const unknownTimeout = -1

// lockTimeout is how long to wait for a lock, in milliseconds. It is mostly the same from one transaction to
// the next, so that it need not be set again.
func lockTimeout(wait time.Duration) (milliseconds int64) {
	if wait > 2*time.Second {
		return int64(wait.Round(time.Second) / time.Millisecond)
	}
	return max(wait.Milliseconds(), 1)
}

// olderTries is how often a writer tries to get the advisory lock from one that may not write. Between two
// looks the lock may pass from one older writer to another, but not this often.
const olderTries = 5

// waitForOlder waits until the holder of the advisory lock has committed, if it may be a writer, and reads
// the head.
func (p *Engine) waitForOlder(
	ctx context.Context, wait time.Duration, queries []engine.WarmupQuery,
) (at engine.Head, err error) {
	c := connOf(p.writer)
	batch := &pgx.Batch{}
	for range olderTries {
		c.expectAnswer(max(wait, 0) + p.AnswerTime)
		var writers int64
		if err := c.conn.QueryRow(ctx, selectOlderWriter, p.lockKey).Scan(&writers); err != nil {
			return at, explain(err)
		}
		if writers > 0 {
			batch.Queue(`SELECT pg_advisory_xact_lock_shared($1)`, p.lockKey)
			break
		}
		var isAlone bool
		const try = `SELECT pg_try_advisory_xact_lock_shared($1)`
		if err := c.conn.QueryRow(ctx, try, p.lockKey).Scan(&isAlone); err != nil {
			return at, explain(err)
		}
		if isAlone {
			break
		}
	}
	return c.head(ctx, batch, queries, batch.Len(), noResult)
}

func noResult(pgx.BatchResults) error { return nil }

// isTableMissing reports whether err says that a table is missing.
func isTableMissing(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "42P01"
}

// readLockKey reads the key of the ledger's advisory lock: the application's number and that of the schema.
func (p *Engine) readLockKey(ctx context.Context, conn *pgx.Conn) error {
	const key = `SELECT ($1::bigint << 32) + $2::text::regnamespace::oid::bigint`
	return conn.QueryRow(ctx, key, int64(schema.ApplicationID), p.address.schema).Scan(&p.lockKey)
}
