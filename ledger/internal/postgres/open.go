package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/postgres/notify"
	"jobledger/schema"
)

// oldestPostgres is the first supported version: 14.
const oldestPostgres = 140000

// Open opens the ledger at dsn. With create it makes a missing one; otherwise a missing one is ErrNoLedger.
// One with an older schema is ErrOlderSchema. With once it compares the objects of the schema only where a
// guard is not as it should be.
func Open(ctx context.Context, dsn string, create, once bool) (*Engine, error) {
	a, err := parseAddress(dsn)
	if err != nil {
		return nil, err
	}
	p := &Engine{
		address:  a,
		info:     engine.Info{Path: a.String(), Sync: a.sync},
		notifier: notify.New(a.notifyServer()),

		PollInterval: notify.PollWithListen, AnswerTime: answerTime,
	}
	steps, err := schema.Postgres()
	if err != nil {
		return nil, err
	}
	p.newest = len(steps)
	if p.writer, err = a.connect(ctx, forWriting, SessionWait); err != nil {
		return nil, a.openError(err)
	}
	if err = p.checkPooler(ctx, connOf(p.writer)); err == nil {
		err = p.setUp(ctx, create)
	}
	guarded := false
	if err == nil && once {
		guarded, err = p.guarded(ctx)
	}
	if err == nil && !guarded && p.info.SchemaVersion == p.newest { // it reads 2,200 pages of the catalog
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
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && p.refused != "" && strings.HasPrefix(e.Code, "28") {
		return fmt.Errorf("open %s: %w; the password file %s was not used, since others may read it: "+
			"chmod 600 it", p, err, p.refused)
	}
	return fmt.Errorf("open %s: %w", p, err)
}

// ledgerComment is the comment of a ledger's schema; a schema without it belongs to something else.
const ledgerComment = "jobledger: a ledger of jobs"

// setUp looks at the server and the ledger's schema, and makes that if there is none and create allows it.
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
	at, err := p.checkedVersion(ctx)
	if create && errors.Is(err, errNoSchema) {
		if err = p.create(ctx); err == nil {
			at, err = p.checkedVersion(ctx)
		}
	}
	switch {
	case err != nil:
		return err
	case at < p.newest:
		return fmt.Errorf("%w: schema %d, this program needs %d", engine.ErrOlderSchema, at, p.newest)
	case at > p.newest:
		if err := p.checkNewer(ctx, conn); err != nil {
			return err
		}
	}
	p.info.SchemaVersion = at
	return p.readLockKey(ctx, conn)
}

// errNoSchema reports that there is no schema of this name.
var errNoSchema = fmt.Errorf("%w", engine.ErrNoLedger)

// checkedVersion is schemaVersion, through a pooler in a transaction that has its own session.
func (p *Engine) checkedVersion(ctx context.Context) (at int, err error) {
	if c := connOf(p.writer); !c.isPooled() {
		return p.schemaVersion(ctx, c.conn)
	}
	err = p.inTransaction(ctx, func(tx pgx.Tx) error {
		at, err = p.schemaVersion(ctx, tx.Conn())
		return err
	})
	return at, err
}

// schemaVersion returns the version of the ledger's schema.
func (p *Engine) schemaVersion(ctx context.Context, conn *pgx.Conn) (at int, err error) {
	var comment *string
	var exists, mayUse bool
	const marked = `SELECT obj_description(n.oid, 'pg_namespace'), n.oid IS NOT NULL,
    coalesce(has_schema_privilege(n.oid, 'USAGE'), false)
FROM (VALUES (1)) AS one LEFT JOIN pg_namespace n ON n.nspname = $1`
	if err := conn.QueryRow(ctx, marked, p.address.schema).Scan(&comment, &exists, &mayUse); err != nil {
		return 0, err
	}
	switch {
	case !exists:
		return 0, fmt.Errorf("%w at %s: the database has no schema %s",
			errNoSchema, p.address, p.address.schema)
	case comment == nil || *comment != ledgerComment:
		return 0, fmt.Errorf("%w: the schema %s is something else; it was not touched. "+
			"Name another one: ?schema=NAME", engine.ErrNotALedger, p.address.schema)
	case !mayUse:
		return 0, fmt.Errorf("%w: %s may not use the schema %s",
			fs.ErrPermission, p.address.config.User, p.address.schema)
	}
	err = conn.QueryRow(ctx, `SELECT schema_version FROM about`).Scan(&at)
	return at, err
}

// checkNewer looks up what a program may do that does not know the newest schema of this ledger.
func (p *Engine) checkNewer(ctx context.Context, conn *pgx.Conn) error {
	var readableFrom, writableFrom int64
	const numbers = `SELECT readable_from, writable_from FROM compatibility`
	if err := conn.QueryRow(ctx, numbers).Scan(&readableFrom, &writableFrom); err != nil {
		return err
	}
	if readableFrom > int64(p.newest) {
		return p.tooOld("read", readableFrom)
	}
	if writableFrom > int64(p.newest) {
		p.info.ReadOnly = p.tooOld("written", writableFrom)
	}
	return nil
}

// tooOld is the error of a program that is too old for what is done with a ledger.
func (p *Engine) tooOld(done string, from int64) error {
	return fmt.Errorf("%w: it may be %s by programs that know schema %d, this one knows schemas up to %d; "+
		"use a newer jobledger", engine.ErrNewerSchema, done, from, p.newest)
}
