package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
	"jobledger/schema"
)

// oldestPostgres is the first supported version: 14.
const oldestPostgres = 140000

// Open opens the ledger at dsn. With create it makes a missing one; otherwise a missing one is ErrNoLedger.
func Open(ctx context.Context, dsn string, create bool) (*Engine, error) {
	a, err := parseAddress(dsn)
	if err != nil {
		return nil, err
	}
	p := &Engine{
		address:  a,
		info:     engine.Info{Path: a.String(), Sync: a.sync},
		notifier: notifier{address: a, sender: rand.Text()},

		PollInterval: pollWithListen,
	}
	if p.writer, err = a.connect(ctx, forWriting); err != nil {
		return nil, a.openError(err)
	}
	err = p.setUp(ctx, create)
	if err == nil { // it costs less than a millisecond, of the ten that opening takes
		var diff []engine.Object
		diff, err = p.SchemaDiff(ctx, p.writer)
		p.info.Altered = engine.Altered(diff)
	}
	if err != nil {
		_ = p.writer.Close()
		return nil, a.openError(explain(err))
	}
	return p, nil
}

// openError adds the address of the ledger to err, unless err names it.
func (p address) openError(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "3D000" {
		return fmt.Errorf("%w at %s: the server has no such database", engine.ErrNoLedger, p)
	}
	if errors.Is(err, engine.ErrNoLedger) {
		return err
	}
	return fmt.Errorf("open %s: %w", p, err)
}

// ledgerComment is the comment of a ledger's schema; a schema without it belongs to something else.
const ledgerComment = "jobledger: a ledger of jobs"

// setUp brings the schema up to date, in one transaction that many processes may attempt at once.
func (p *Engine) setUp(ctx context.Context, create bool) error {
	conn := connOf(p.writer).conn
	var version int
	var micros int64
	asked := time.Now()
	const first = `SELECT current_setting('server_version_num')::int, ` + serverClock
	if err := conn.QueryRow(ctx, first).Scan(&version, &micros); err != nil {
		return err
	}
	switch at, answered := time.UnixMicro(micros).UTC(), time.Now(); {
	case at.Before(asked):
		p.info.ClockSkew = at.Sub(asked.Round(0))
	case at.After(answered):
		p.info.ClockSkew = at.Sub(answered.Round(0))
	}
	if version < oldestPostgres {
		return fmt.Errorf("ledger: PostgreSQL %d.%d is too old; at least 14 is needed",
			version/10000, version%10000)
	}
	steps, err := schema.Postgres()
	if err != nil {
		return err
	}
	p.info.SchemaVersion = len(steps)
	at, err := p.schemaVersion(ctx, conn, create)
	if err == nil && at < len(steps) {
		err = p.migrate(ctx, conn, steps, create)
	}
	if err != nil {
		return err
	}
	return p.readLockKey(ctx, conn)
}

// schemaVersion returns the version of the ledger's schema; 0 if there is none and it may be made.
func (p *Engine) schemaVersion(ctx context.Context, conn *pgx.Conn, create bool) (at int, err error) {
	var comment *string
	var exists, mayUse bool
	const marked = `SELECT obj_description(n.oid, 'pg_namespace'), n.oid IS NOT NULL,
    coalesce(has_schema_privilege(n.oid, 'USAGE'), false)
FROM (VALUES (1)) AS one LEFT JOIN pg_namespace n ON n.nspname = $1`
	if err := conn.QueryRow(ctx, marked, p.address.schema).Scan(&comment, &exists, &mayUse); err != nil {
		return 0, err
	}
	switch {
	case !exists && create:
		return 0, nil
	case !exists:
		return 0, fmt.Errorf("%w at %s: the database has no schema %s",
			engine.ErrNoLedger, p.address, p.address.schema)
	case comment == nil || *comment != ledgerComment:
		return 0, fmt.Errorf("%w: the schema %s is something else; it was not touched. "+
			"Name another one: ?schema=NAME", engine.ErrNotALedger, p.address.schema)
	case !mayUse:
		return 0, fmt.Errorf("%w: %s may not use the schema %s",
			fs.ErrPermission, p.address.config.User, p.address.schema)
	}
	if err := conn.QueryRow(ctx, `SELECT schema_version FROM about`).Scan(&at); err != nil {
		return 0, err
	}
	if at > p.info.SchemaVersion {
		return 0, fmt.Errorf("%w: schema %d, this program knows up to %d; use a newer jobledger",
			engine.ErrNewerSchema, at, p.info.SchemaVersion)
	}
	return at, nil
}

// migrate locks the database, since there may be no schema to lock yet.
func (p *Engine) migrate(
	ctx context.Context, conn *pgx.Conn, steps []schema.Migration, create bool,
) (err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback(context.WithoutCancel(ctx))
		}
	}()
	if err := lockMigrations(ctx, tx); err != nil {
		return err
	}
	at, err := p.schemaVersion(ctx, conn, create) // another process may have been first
	if err != nil {
		return err
	}
	if at == 0 {
		name := pgx.Identifier{p.address.schema}.Sanitize()
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+name); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `COMMENT ON SCHEMA `+name+` IS '`+ledgerComment+`'`); err != nil {
			return err
		}
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
	err = tx.Commit(ctx)
	p.info.Created = err == nil && at == 0
	return err
}
