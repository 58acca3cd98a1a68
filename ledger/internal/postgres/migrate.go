package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/ledger/failpoint"
	"jobledger/schema"
)

// migrationWait is how long a migration waits for a lock: that of the writers, or of a table that a long read
// uses. Nothing is written meanwhile.
const migrationWait = 30 * time.Second

// firstLocked is the first version with the table write_lock.
const firstLocked = 15

// create makes the ledger. If another process does so at the same time, this one waits for it.
func (p *Engine) create(ctx context.Context) error {
	err := p.inTransaction(ctx, func(tx pgx.Tx) error {
		name := pgx.Identifier{p.address.schema}.Sanitize()
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+name); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `COMMENT ON SCHEMA `+name+` IS '`+ledgerComment+`'`); err != nil {
			return err
		}
		return p.runMigrations(ctx, tx, 0)
	})
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.Code == "23505" || e.Code == "42P06") {
		return nil // another process has made it
	}
	p.info.Created = err == nil
	return err
}

// Migrate brings the ledger at dsn, which must exist, to the newest schema. It takes the lock of the writers.
func Migrate(ctx context.Context, dsn string) error {
	a, err := parseAddress(dsn)
	if err != nil {
		return err
	}
	steps, err := schema.Postgres()
	if err != nil {
		return err
	}
	p := &Engine{address: a, newest: len(steps)}
	if p.writer, err = a.connect(ctx, forWriting, SessionWait); err != nil {
		return a.openError(err)
	}
	defer p.writer.Close()
	c := connOf(p.writer)
	at := 0
	if err = p.checkPooler(ctx, c); err == nil {
		at, err = p.schemaVersion(ctx, c.conn)
	}
	if err == nil && at < p.newest {
		if err = p.readLockKey(ctx, c.conn); err == nil {
			err = p.inTransaction(ctx, func(tx pgx.Tx) error { return p.migrate(ctx, tx, at) })
		}
	}
	if err != nil {
		return a.openError(explain(err))
	}
	return nil
}

// migrate migrates a ledger whose schema had the version at.
func (p *Engine) migrate(ctx context.Context, tx pgx.Tx, at int) error {
	locks := []string{`LOCK TABLE about IN SHARE ROW EXCLUSIVE MODE`} // another migration
	if at >= firstLocked {
		locks = append(locks, lockTable)
	} else { // programs that know no newer schema migrate under this lock of the whole database
		locks = append([]string{fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, schema.ApplicationID)}, locks...)
	}
	for _, lock := range locks {
		if _, err := tx.Exec(ctx, lock); err != nil {
			return err
		}
	}
	var writers int64
	if err := tx.QueryRow(ctx, selectOlderWriter, p.lockKey).Scan(&writers); err != nil {
		return err
	}
	wait := `SELECT pg_try_advisory_xact_lock($1)`
	if writers > 0 {
		wait = `SELECT pg_advisory_xact_lock($1)`
	}
	if _, err := tx.Exec(ctx, wait, p.lockKey); err != nil {
		return err
	}
	at, err := p.schemaVersion(ctx, tx.Conn()) // another process may have been first
	if err != nil {
		return err
	}
	return p.runMigrations(ctx, tx, at)
}

// runMigrations runs the migrations after the version at.
func (p *Engine) runMigrations(ctx context.Context, tx pgx.Tx, at int) error {
	steps, err := schema.Postgres()
	if err != nil {
		return err
	}
	for _, step := range steps[min(at, len(steps)):] {
		failpoint.Hit("migrate")
		if _, err := tx.Exec(ctx, step.SQL, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("migration %04d_%s: %w", step.Version, step.Name, err)
		}
		failpoint.Hit("migrated")
		if _, err := tx.Exec(ctx, `UPDATE about SET schema_version = $1`, step.Version); err != nil {
			return err
		}
	}
	failpoint.Hit("migrations")
	return nil
}

// inTransaction runs fn in a transaction, in the session that the connection has its settings in.
func (p *Engine) inTransaction(ctx context.Context, fn func(pgx.Tx) error) (err error) {
	c := connOf(p.writer)
	tx, err := c.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback(context.WithoutCancel(ctx))
		}
	}()
	var mark string
	const look = `SELECT coalesce(current_setting('` + markSetting + `', true), ''),
    set_config('lock_timeout', $1, true)`
	if err = tx.QueryRow(ctx, look, fmt.Sprint(migrationWait.Milliseconds())).Scan(&mark, nil); err != nil {
		return err
	}
	if mark != c.mark {
		return errPooled
	}
	if err = fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
