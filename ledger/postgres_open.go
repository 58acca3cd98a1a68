package ledger

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
	"jobledger/schema"
)

// oldestPostgres is the first version that this program knows to work: 14.
const oldestPostgres = 140000

func openPostgres(ctx context.Context, dsn string, create bool) (*Store, error) {
	place, err := parsePostgres(dsn)
	if err != nil {
		return nil, err
	}
	s := newStore(dsn)
	p := &postgres{store: s, place: place, bell: postgresBell{place: place, tone: rand.Text()}}
	s.path, s.sync, s.engine = place.String(), place.sync, p
	if p.writer, err = place.connect(ctx, forWriting); err != nil {
		return nil, place.opening(err)
	}
	if err := p.setUp(ctx, create); err != nil {
		_ = p.writer.close()
		return nil, place.opening(explainPostgres(err))
	}
	go s.commitLoop()
	return s, nil
}

// opening says which ledger could not be opened, where err does not say so yet.
func (p postgresPlace) opening(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "3D000" {
		return fmt.Errorf("%w at %s: the server has no such database", ErrNoLedger, p)
	}
	if errors.Is(err, ErrNoLedger) {
		return err
	}
	return fmt.Errorf("open %s: %w", p, err)
}

// markedLedger is what the schema's comment says; a schema without it is somebody else's.
const markedLedger = "jobledger: a ledger of jobs"

// setUp brings the schema up to date, in one transaction that many processes may attempt at once.
func (p *postgres) setUp(ctx context.Context, create bool) error {
	conn := p.writer.server().conn
	var version int
	var micros int64
	asked := time.Now()
	const first = `SELECT current_setting('server_version_num')::int, ` + serverClock
	if err := conn.QueryRow(ctx, first).Scan(&version, &micros); err != nil {
		return err
	}
	switch at, answered := FromMicros(micros), time.Now(); {
	case at.Before(asked):
		p.ahead = at.Sub(asked.Round(0))
	case at.After(answered):
		p.ahead = at.Sub(answered.Round(0))
	}
	if version < oldestPostgres {
		return fmt.Errorf("ledger: PostgreSQL %d.%d is too old; at least 14 is needed", version/10000, version%10000)
	}
	steps, err := schema.Postgres()
	if err != nil {
		return err
	}
	p.store.version = len(steps)
	at, err := p.schemaVersion(ctx, conn, create)
	if err == nil && at < len(steps) {
		err = p.migrate(ctx, conn, steps, create)
	}
	if err != nil {
		return err
	}
	return conn.QueryRow(ctx, `SELECT ($1::bigint << 32) + $2::text::regnamespace::oid::bigint`, int64(schema.ApplicationID), p.place.schema).Scan(&p.key)
}

// schemaVersion returns the version of the ledger's schema; 0 where there is none and one may be made.
func (p *postgres) schemaVersion(ctx context.Context, conn *pgx.Conn, create bool) (at int, err error) {
	var mark *string
	var there, mayUse bool
	const marked = `SELECT obj_description(n.oid, 'pg_namespace'), n.oid IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'USAGE'), false)
FROM (VALUES (1)) AS one LEFT JOIN pg_namespace n ON n.nspname = $1`
	if err := conn.QueryRow(ctx, marked, p.place.schema).Scan(&mark, &there, &mayUse); err != nil {
		return 0, err
	}
	switch {
	case !there && create:
		return 0, nil
	case !there:
		return 0, fmt.Errorf("%w at %s: the database has no schema %s", ErrNoLedger, p.place, p.place.schema)
	case mark == nil || *mark != markedLedger:
		return 0, fmt.Errorf("%w: the schema %s is something else; it was not touched. Name another one: ?schema=NAME", ErrNotALedger, p.place.schema)
	case !mayUse:
		return 0, fmt.Errorf("%w: %s may not use the schema %s", fs.ErrPermission, p.place.config.User, p.place.schema)
	}
	if err := conn.QueryRow(ctx, `SELECT schema_version FROM about`).Scan(&at); err != nil {
		return 0, err
	}
	if at > p.store.version {
		return 0, fmt.Errorf("%w: schema %d, this program knows up to %d; use a newer jobledger", ErrNewerSchema, at, p.store.version)
	}
	return at, nil
}

// migrate holds a lock of the database, since there may be no schema yet.
func (p *postgres) migrate(ctx context.Context, conn *pgx.Conn, steps []schema.Migration, create bool) (err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback(context.WithoutCancel(ctx))
		}
	}()
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(schema.ApplicationID)); err != nil {
		return err
	}
	at, err := p.schemaVersion(ctx, conn, create) // another process may have been first
	if err != nil {
		return err
	}
	if at == 0 {
		name := pgx.Identifier{p.place.schema}.Sanitize()
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+name); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `COMMENT ON SCHEMA `+name+` IS '`+markedLedger+`'`); err != nil {
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
	return tx.Commit(ctx)
}
