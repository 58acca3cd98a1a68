package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/schema"
)

// Two advisory locks keep writers apart. Both end with the transaction that takes them.
//
//   - The ledger's own, which a writer takes with BEGIN and holds until COMMIT, so that pos is dense.
//   - That of migrations, one for the whole database, which a process takes before it changes a schema.

// queueLock adds the statement that waits for the ledger's lock, for at most wait.
func (p *Engine) queueLock(batch *pgx.Batch, wait time.Duration) {
	batch.Queue(`SELECT set_config('lock_timeout', $1, true), pg_advisory_xact_lock($2)`,
		strconv.FormatInt(max(wait.Milliseconds(), 1), 10), p.lockKey)
}

// readLockKey reads the key of the ledger's lock: the application's number and that of the schema.
func (p *Engine) readLockKey(ctx context.Context, conn *pgx.Conn) error {
	const key = `SELECT ($1::bigint << 32) + $2::text::regnamespace::oid::bigint`
	return conn.QueryRow(ctx, key, int64(schema.ApplicationID), p.address.schema).Scan(&p.lockKey)
}

// lockMigrations waits for the lock of migrations.
func lockMigrations(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(schema.ApplicationID))
	return err
}
