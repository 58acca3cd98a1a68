package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/internal/engine"
	"jobledger/schema"
)

// Facts describe a PostgreSQL server and the users of a ledger on it, apart from the ledger's content.
type Facts struct {
	Version string // as in "15.18"
	Schema  int    // the version of the ledger's schema
	Newest  int    // the version that this program would migrate it to
	User    string // of this process's connection

	// ClockSkew is how far the server's clock is ahead of this machine's, within Tolerance, the time that the
	// question took.
	ClockSkew, Tolerance time.Duration

	Standby      bool // a read-only copy
	MayWrite     bool // this user may append events
	Unsafe       []string
	NoAutovacuum bool
	Connections  int   // open ones, to all databases
	Most         int   // connections that the server allows
	MostXIDs     int64 // transactions that vacuum has not frozen; at 2e9 the server refuses writes

	Writers []Backend // those that hold the ledger's write lock or wait for it
	Holding []Backend // those whose snapshots prevent vacuum, the oldest first
	Slots   []string  // replication slots and prepared transactions that prevent vacuum
}

// Backend is a connection to the server, as far as this user may see it.
type Backend struct {
	PID     int
	User    string
	Program string
	Host    string
	State   string        // as in "idle in transaction"; "": this user may not see it
	Since   time.Duration // the transaction began, or an idle session became idle; 0: not known
	Holds   bool          // it holds the ledger's write lock
	// Older says that it is only the lock of programs older than schema 15, and that it may not write: no other
	// program waits for it.
	Older bool

	transaction string // it stays the same as long as the lock is held; for a writer
}

// Inspection is an open snapshot of a ledger that was not opened for writing. Close it.
type Inspection struct {
	Engine  *Engine
	Session *engine.Session
	Head    engine.Head
	Facts   Facts
}

// Inspect begins a snapshot of the ledger at dsn. It migrates nothing and writes nothing, so it works on a
// standby. Errors: as those of Open without create.
func Inspect(ctx context.Context, dsn string) (_ *Inspection, err error) {
	a, err := parseAddress(dsn)
	if err != nil {
		return nil, err
	}
	s, err := a.connect(ctx, forReading, SessionWait)
	if err != nil {
		return nil, a.openError(err)
	}
	i := &Inspection{Engine: &Engine{address: a, info: engine.Info{Path: a.String()}}, Session: s}
	if i.Facts, err = i.Engine.facts(ctx, connOf(s).conn); err != nil {
		_ = s.Close()
		return nil, a.openError(explain(err))
	}
	if i.Head, err = i.Engine.BeginSnapshot(ctx, s); err != nil {
		_ = s.Close()
		return nil, a.openError(err)
	}
	return i, nil
}

// Close ends the snapshot.
func (i *Inspection) Close() {
	_, _ = i.Session.Exec(`ROLLBACK`)
	_ = i.Session.Close()
}

// unsafeSettings are settings with which a power cut or a crash loses data.
const unsafeSettings = `SELECT name FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name`

const selectServer = `SELECT current_setting('server_version'), current_user::text, pg_is_in_recovery(),
    has_table_privilege('events', 'INSERT') AND NOT current_setting('transaction_read_only')::bool,
    current_setting('autovacuum') = 'off',
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')::bigint,
    (SELECT age(datfrozenxid)::bigint FROM pg_database WHERE datname = current_database())`

// selectWriters finds the holders of the table's lock and of the advisory lock $1, and those that wait. One
// without a process is a prepared transaction.
const selectWriters = `SELECT coalesce(l.pid, 0), coalesce(a.usename, ''),
    CASE WHEN l.pid IS NULL THEN 'a prepared transaction' ELSE coalesce(a.application_name, '') END,
    coalesce(a.client_hostname, host(a.client_addr), ''), coalesce(a.state, ''),
    coalesce(extract(epoch FROM clock_timestamp() -
        CASE WHEN a.state = 'idle' THEN a.state_change ELSE a.xact_start END), 0)::float8, bool_or(l.granted),
    bool_and(l.locktype = 'advisory') AND
        NOT bool_or(coalesce(has_table_privilege(a.usesysid, 'events', 'INSERT'), false)),
    l.virtualtransaction
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (l.locktype = 'relation' AND l.relation = to_regclass('write_lock') AND l.mode <> 'AccessShareLock'
        OR l.locktype = 'advisory' AND l.objsubid = 1
            AND l.classid::bigint = $1::bigint >> 32 AND l.objid::bigint = $1::bigint & 4294967295)
GROUP BY l.pid, a.usename, a.application_name, a.client_hostname, a.client_addr, a.state, a.state_change,
    a.xact_start, l.virtualtransaction
ORDER BY bool_or(l.granted) DESC, a.xact_start`

const selectHolding = `SELECT pid, coalesce(usename, ''), coalesce(application_name, ''),
    coalesce(client_hostname, host(client_addr), ''), coalesce(state, ''),
    coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8, false, false, ''
FROM pg_stat_activity
WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
    AND backend_type <> 'autovacuum worker'
ORDER BY xact_start LIMIT 10`

const selectSlots = `SELECT format('the replication slot %s', slot_name) FROM pg_replication_slots
WHERE age(coalesce(xmin, catalog_xmin)) > 1000000
UNION ALL
SELECT format('the prepared transaction %s of %s', gid, prepared::text) FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < now() - interval '5 minutes'`

// facts asks the server. It refuses a schema that is not a ledger.
func (p *Engine) facts(ctx context.Context, conn *pgx.Conn) (f Facts, err error) {
	steps, err := schema.Postgres()
	if err != nil {
		return f, err
	}
	f.Newest, p.newest = len(steps), len(steps)
	if f.Schema, err = p.schemaVersion(ctx, conn); err != nil {
		return f, err
	}
	if f.Schema > f.Newest {
		if err := p.checkNewer(ctx, conn); err != nil {
			return f, err
		}
	}
	p.info.SchemaVersion = f.Schema
	if f.ClockSkew, f.Tolerance, err = clockOf(ctx, conn); err != nil {
		return f, err
	}
	err = conn.QueryRow(ctx, selectServer).Scan(&f.Version, &f.User, &f.Standby, &f.MayWrite, &f.NoAutovacuum,
		&f.Connections, &f.Most, &f.MostXIDs)
	if err != nil {
		return f, err
	}
	if f.Unsafe, err = stringsOf(ctx, conn, unsafeSettings); err != nil {
		return f, err
	}
	if err := p.readLockKey(ctx, conn); err != nil {
		return f, err
	}
	if f.Writers, err = p.writers(ctx, conn); err != nil {
		return f, err
	}
	if f.Holding, err = backends(ctx, conn, selectHolding); err != nil {
		return f, err
	}
	f.Slots, err = stringsOf(ctx, conn, selectSlots)
	return f, err
}

// hiddenWait is how long a session is watched whose state this user may not see.
const hiddenWait = 2 * time.Second

// writers returns the holders of the write lock and those that wait. The age of one whose state this user may
// not see is how long it was watched, or 0 if it has gone on meanwhile.
func (p *Engine) writers(ctx context.Context, conn *pgx.Conn) (found []Backend, err error) {
	found, err = backends(ctx, conn, selectWriters, p.lockKey)
	isHidden := func(s Backend) bool { return s.Holds && s.State == "" && s.PID != 0 }
	if err != nil || !slices.ContainsFunc(found, isHidden) {
		return found, err
	}
	select {
	case <-ctx.Done():
	case <-time.After(hiddenWait):
	}
	again, err := backends(ctx, conn, selectWriters, p.lockKey)
	for i, s := range found {
		still := func(now Backend) bool { return now.PID == s.PID && now.transaction == s.transaction && now.Holds }
		if isHidden(s) && slices.ContainsFunc(again, still) {
			found[i].Since = hiddenWait
		}
	}
	return found, err
}

// clockOf compares the server's clock with this machine's. It takes the quickest of some answers.
func clockOf(ctx context.Context, conn *pgx.Conn) (skew, tolerance time.Duration, err error) {
	tolerance = time.Hour
	for range 3 {
		var micros int64
		asked := time.Now()
		if err := conn.QueryRow(ctx, `SELECT `+serverClock).Scan(&micros); err != nil {
			return 0, 0, err
		}
		took := time.Since(asked)
		if took/2 < tolerance {
			tolerance, skew = took/2, time.UnixMicro(micros).UTC().Sub(asked.Round(0).Add(took/2))
		}
	}
	return skew, tolerance, nil
}

func stringsOf(ctx context.Context, conn *pgx.Conn, query string) ([]string, error) {
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func backends(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]Backend, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Backend, err error) {
		var seconds float64
		err = row.Scan(&s.PID, &s.User, &s.Program, &s.Host, &s.State, &seconds, &s.Holds,
			&s.Older, &s.transaction)
		s.Since = time.Duration(seconds * float64(time.Second))
		return s, err
	})
}

// String describes the backend for people.
func (s Backend) String() string {
	if s.PID == 0 {
		return s.Program
	}
	text := fmt.Sprintf("pid %d", s.PID)
	if s.Program != "" {
		text = s.Program + " (" + text + ")"
	}
	if s.User != "" {
		text += " of " + s.User
	}
	if s.Host != "" {
		text += " on " + s.Host
	}
	return text
}
