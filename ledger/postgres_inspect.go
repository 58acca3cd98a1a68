package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/schema"
)

// ServerFacts are what a PostgreSQL server tells of itself and of those who use a ledger, apart from what that holds.
type ServerFacts struct {
	Version string // as in "15.18"
	Schema  int    // the version of the ledger's schema
	Newest  int    // the version of the schema that this program would make of it
	User    string // as whom this process is there

	// Ahead is how far the server's clock is ahead of this machine's, and Give how much of that may be the way there.
	Ahead, Give time.Duration

	Standby      bool // a copy that may only be read
	MayWrite     bool // events
	Unsafe       []string
	NoAutovacuum bool
	Connections  int   // that are open, of all databases
	Most         int   // that there may be
	MostXIDs     int64 // transactions since the last one that vacuum has frozen; at two thousand million nothing is written any more

	Writers []ServerSession // that hold the ledger's write lock or wait for it
	Holding []ServerSession // whose snapshot keeps vacuum back, the oldest first
	Slots   []string        // of replication, and prepared transactions, that do so
}

// ServerSession is a connection to the server, as far as this user may know of it.
type ServerSession struct {
	PID     int
	User    string
	Program string
	Host    string
	State   string        // as in "idle in transaction"
	Since   time.Duration // in this transaction; 0: not known
	Holds   bool          // the ledger's write lock
}

// Address returns what Store.Path does of the ledger at dsn, in PostgreSQL, without opening it.
func Address(dsn string) (string, error) {
	place, err := parsePostgres(dsn)
	if err != nil {
		return "", err
	}
	return place.String(), nil
}

// Ahead returns how far the clock by which commands are judged was ahead of this machine's, at least, when the ledger was
// opened: a server's may be; a file has this machine's.
func (s *Store) Ahead() time.Duration {
	if p, ok := s.engine.(*postgres); ok {
		return p.ahead
	}
	return 0
}

// LookServer runs fn on one snapshot of the ledger at dsn, in PostgreSQL. It migrates nothing and writes nothing, so that it
// also does where nothing may be written. Errors: as OpenExisting's.
func LookServer(ctx context.Context, dsn string, fn func(*Tx, ServerFacts) error) error {
	place, err := parsePostgres(dsn)
	if err != nil {
		return err
	}
	s, err := place.connect(ctx, forReading)
	if err != nil {
		return place.opening(err)
	}
	defer s.close()
	store := newStore(dsn)
	p := &postgres{store: store, place: place}
	store.path, store.engine = place.String(), p
	facts, err := p.facts(ctx, s.server().conn)
	if err != nil {
		return place.opening(explainPostgres(err))
	}
	at, err := p.look(ctx, s)
	if err != nil {
		return place.opening(err)
	}
	tx := newTx(store, s, at)
	tx.readOnly = true
	err = fn(tx, facts)
	_, _ = s.exec(`ROLLBACK`)
	return err
}

// serverSettings are those that a power cut or a crash makes one sorry for.
const serverSettings = `SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name`

const selectServer = `SELECT current_setting('server_version'), current_user::text, pg_is_in_recovery(),
    has_table_privilege('events', 'INSERT') AND NOT current_setting('transaction_read_only')::bool, current_setting('autovacuum') = 'off',
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), current_setting('max_connections')::bigint,
    (SELECT age(datfrozenxid)::bigint FROM pg_database WHERE datname = current_database())`

// selectWriters is asked for the two halves of the lock's key.
const selectWriters = `SELECT a.pid, coalesce(a.usename, ''), coalesce(a.application_name, ''), coalesce(a.client_hostname, host(a.client_addr), ''),
    coalesce(a.state, ''), coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::float8, l.granted
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.classid::bigint = $1 AND l.objid = $2::text::regnamespace::oid AND l.objsubid = 1 AND d.datname = current_database()
ORDER BY l.granted DESC, a.xact_start`

const selectHolding = `SELECT pid, coalesce(usename, ''), coalesce(application_name, ''), coalesce(client_hostname, host(client_addr), ''),
    coalesce(state, ''), coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8, false
FROM pg_stat_activity
WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'
ORDER BY xact_start LIMIT 10`

const selectSlots = `SELECT format('the replication slot %s', slot_name) FROM pg_replication_slots WHERE age(coalesce(xmin, catalog_xmin)) > 1000000
UNION ALL
SELECT format('the prepared transaction %s of %s', gid, prepared::text) FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < now() - interval '5 minutes'`

// facts asks the server. The ledger must be one.
func (p *postgres) facts(ctx context.Context, conn *pgx.Conn) (f ServerFacts, err error) {
	steps, err := schema.Postgres()
	if err != nil {
		return f, err
	}
	f.Newest, p.store.version = len(steps), len(steps)
	if f.Schema, err = p.schemaVersion(ctx, conn, false); err != nil {
		return f, err
	}
	if f.Ahead, f.Give, err = clockOf(ctx, conn); err != nil {
		return f, err
	}
	err = conn.QueryRow(ctx, selectServer).Scan(&f.Version, &f.User, &f.Standby, &f.MayWrite, &f.NoAutovacuum, &f.Connections, &f.Most, &f.MostXIDs)
	if err != nil {
		return f, err
	}
	if f.Unsafe, err = column1(ctx, conn, serverSettings); err != nil {
		return f, err
	}
	if f.Writers, err = sessions(ctx, conn, selectWriters, int64(schema.ApplicationID), p.place.schema); err != nil {
		return f, err
	}
	if f.Holding, err = sessions(ctx, conn, selectHolding); err != nil {
		return f, err
	}
	f.Slots, err = column1(ctx, conn, selectSlots)
	return f, err
}

// clockOf compares the server's clock with this machine's. The quickest of some answers says most.
func clockOf(ctx context.Context, conn *pgx.Conn) (ahead, give time.Duration, err error) {
	give = time.Hour
	for range 3 {
		var micros int64
		asked := time.Now()
		if err := conn.QueryRow(ctx, `SELECT `+serverClock).Scan(&micros); err != nil {
			return 0, 0, err
		}
		took := time.Since(asked)
		if took/2 < give {
			give, ahead = took/2, FromMicros(micros).Sub(asked.Round(0).Add(took/2))
		}
	}
	return ahead, give, nil
}

func column1(ctx context.Context, conn *pgx.Conn, query string) ([]string, error) {
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func sessions(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]ServerSession, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s ServerSession, err error) {
		var seconds float64
		err = row.Scan(&s.PID, &s.User, &s.Program, &s.Host, &s.State, &seconds, &s.Holds)
		s.Since = time.Duration(seconds * float64(time.Second))
		return s, err
	})
}

// String is the session for people.
func (s ServerSession) String() string {
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
