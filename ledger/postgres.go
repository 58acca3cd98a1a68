package ledger

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/failpoint"
)

// postgres is PostgreSQL as an engine: a ledger is a schema of a database. Writers of all processes take turns, by an
// advisory lock that each holds from its first statement to its commit, so that events come one after the other there
// too: pos is dense, at never decreases, and what is visible is all there is up to it.
type postgres struct {
	store  *Store // for its settings
	place  postgresPlace
	writer *session // nil: not connected
	key    int64    // of the ledger's advisory lock
	bell   postgresBell
	told   bool          // the last commit took a notification with it
	ahead  time.Duration // the server's clock of this machine's, when it was opened
}

// frozenWriter is how long the server lets a process hold the write lock without a word from it.
var frozenWriter = 5 * time.Second

// A process that cannot reach the server asks again, after pauses that grow.
const (
	firstReconnect = 20 * time.Millisecond
	lastReconnect  = time.Second
)

// serverClock is the server's clock, in microseconds since 1970.
const serverClock = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

const standingNow = `SELECT ` + serverClock + `, coalesce(t.pos, 0), coalesce(t.at, 0)
FROM (VALUES (1)) AS one LEFT JOIN (SELECT pos, at FROM events ORDER BY pos DESC LIMIT 1) AS t ON true`

// begin connects where that is needed. Up to here nothing has been written, so that it may be tried again.
func (p *postgres) begin(ctx context.Context, since time.Time) (*session, standing, error) {
	failpoint.Hit("begin")
	pause := firstReconnect
	for {
		at, err := p.tryBegin(ctx, p.store.lockWait-time.Since(since))
		if err == nil {
			failpoint.Hit("begun")
			return p.writer, at, nil
		}
		if ctx.Err() != nil {
			return nil, at, context.Cause(ctx)
		}
		if !errors.Is(err, ErrIO) {
			return nil, at, err
		}
		if time.Since(since) > p.store.lockWait {
			return nil, at, fmt.Errorf("%w: %s could not be reached within %s: %w", ErrBusy, p.place, p.store.lockWait, err)
		}
		select {
		case <-ctx.Done():
			return nil, at, context.Cause(ctx)
		case <-time.After(pause):
		}
		pause = min(2*pause, lastReconnect)
	}
}

func (p *postgres) tryBegin(ctx context.Context, wait time.Duration) (at standing, err error) {
	if p.writer == nil {
		if p.writer, err = p.place.connect(ctx, forWriting); err != nil {
			return at, err
		}
	}
	_ = p.writer.server().settle() // a notification; that it failed is of no account, or is seen at once
	batch := &pgx.Batch{}
	batch.Queue(`BEGIN`)
	batch.Queue(`SELECT set_config('lock_timeout', $1, true), pg_advisory_xact_lock($2)`, strconv.FormatInt(max(wait.Milliseconds(), 1), 10), p.key)
	queries := p.store.cache.warmup()
	at, prefetched, err := p.writer.server().stand(ctx, batch, queries)
	if err == nil {
		p.store.cache.answered(prefetched)
		return at, nil
	}
	p.store.cache.Invalidate()
	_ = p.rollback() // no function has run, so none is to be run again
	if len(queries) > 0 && errors.Is(err, ErrDamaged) {
		return p.tryBegin(ctx, wait) // without warm-up queries: the function that asks gets the error
	}
	return at, err
}

// stand runs statements, and then asks where the ledger stands, and the queries.
func (c *server) stand(ctx context.Context, first *pgx.Batch, queries []WarmupQuery) (at standing, answers []answer, err error) {
	before := first.Len()
	first.Queue(standingNow)
	for _, q := range queries {
		first.Queue(c.text(q.Query), q.Args...)
	}
	results := c.conn.SendBatch(ctx, first)
	for range before {
		if _, err = results.Exec(); err != nil {
			break
		}
	}
	if err == nil {
		var now int64
		err = results.QueryRow().Scan(&now, &at.tail, &at.tailAt)
		at.now = FromMicros(now)
	}
	for i := 0; i < len(queries) && err == nil; i++ {
		var a answer
		if a, err = readAnswer(results.Query()); err == nil {
			a.query = queries[i].Query
			answers = append(answers, a)
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return at, answers, explainPostgres(err)
}

func (p *postgres) commit() error {
	notification, args := p.following()
	err := p.writer.server().commit(notification, args...)
	if err == nil {
		failpoint.Hit("committed")
	}
	return err
}

// rollback leaves no transaction behind: where it cannot be ended, its connection is.
func (p *postgres) rollback() error {
	if p.writer == nil {
		return nil
	}
	if p.writer.server().rollback() != nil {
		_ = p.writer.close()
		p.writer = nil
	}
	return nil
}

func (p *postgres) snapshot(ctx context.Context) (*session, error) {
	return p.place.connect(ctx, forReading)
}

func (p *postgres) look(ctx context.Context, s *session) (standing, error) {
	batch := &pgx.Batch{}
	batch.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	at, _, err := s.server().stand(ctx, batch, nil)
	return at, err
}

func (p *postgres) same() error { return nil } // a connection stays with its database

func (p *postgres) obstacle(err error) error { return err }

func (p *postgres) along(tx *Tx, after, until int64) (recordSource, func(), error) {
	return &pagedRows{tx: tx, after: after, until: until}, func() {}, nil
}

func (p *postgres) close() error {
	p.bell.close()
	if p.writer != nil {
		return p.writer.close()
	}
	return nil
}

// postgresPlace is where a ledger is.
type postgresPlace struct {
	config *pgx.ConnConfig
	schema string
	sync   string
	listen bool // false: behind a pooler that cannot
}

// String is the address, without a password.
func (p postgresPlace) String() string {
	u := url.URL{Scheme: "postgres", User: url.User(p.config.User), Path: "/" + p.config.Database}
	u.Host = net.JoinHostPort(p.config.Host, strconv.Itoa(int(p.config.Port)))
	if strings.HasPrefix(p.config.Host, "/") {
		u.Host, u.RawQuery = "", url.Values{"host": {p.config.Host}, "port": {strconv.Itoa(int(p.config.Port))}}.Encode()
	}
	if p.schema != defaultSchema {
		values := u.Query()
		values.Set("schema", p.schema)
		u.RawQuery = values.Encode()
	}
	return u.String()
}

const (
	defaultSchema  = "jobledger"
	connectTimeout = 10 * time.Second
)

// OnServer reports whether dsn is the address of a ledger in PostgreSQL, and not the path of a file.
func OnServer(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}

// parsePostgres takes this program's own options out of an address and leaves the rest to pgx, which knows those of
// libpq, its environment variables and its password file.
func parsePostgres(dsn string) (p postgresPlace, err error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Fragment != "" || u.User == nil && strings.Contains(u.Path+u.RawQuery, "@") {
		// What exactly is wrong is not said: where a / or a # stands in a password, it would be a part of that.
		return p, fmt.Errorf("%w: not a URL as postgres://USER@HOST/DATABASE; what is special in a name or a password is written as %%40 for @, %%2F for /, %%23 for #, %%3F for ?", ErrAddress)
	}
	values := u.Query()
	p.schema, p.sync, p.listen = defaultSchema, "full", true
	for name, allowed := range map[string]string{"schema": "a name of lower-case letters, digits and _", "sync": "full or normal", "listen": "on or off"} {
		if !values.Has(name) {
			continue
		}
		v := strings.Join(values[name], ",")
		values.Del(name)
		switch {
		case name == "schema" && isSchemaName(v):
			p.schema = v
		case name == "sync" && (v == "full" || v == "normal"):
			p.sync = v
		case name == "listen" && (v == "on" || v == "off"):
			p.listen = v == "on"
		default:
			return p, fmt.Errorf("%w: option %s=%s; it takes %s", ErrAddress, name, v, allowed)
		}
	}
	u.RawQuery = values.Encode()
	if p.config, err = pgx.ParseConfig(u.String()); err != nil {
		return p, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	if p.config.ConnectTimeout == 0 {
		p.config.ConnectTimeout = connectTimeout
	}
	return p, nil
}

func isSchemaName(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && !strings.HasPrefix(s, "pg_") && s[0] > '9'
}

// purpose is what a connection is for.
type purpose int

const (
	forReading purpose = iota
	forWriting
)

// connect opens a connection. ErrIO where the server cannot be reached now.
func (p postgresPlace) connect(ctx context.Context, for_ purpose) (*session, error) {
	config := p.config.Copy()
	settings := map[string]string{
		"search_path":                   p.schema,
		"application_name":              "jobledger",
		"timezone":                      "UTC",
		"default_transaction_isolation": "read committed",
		"jit":                           "off", // its plans are small
	}
	if for_ == forWriting {
		settings["idle_in_transaction_session_timeout"] = strconv.FormatInt(frozenWriter.Milliseconds(), 10)
		// A writer's statements have one good plan each, by an index in its order, whatever the statistics say of a
		// table that was empty a minute ago: a hash of all jobs, or a sort of a lane, costs a hundred times as much, and
		// to start processes for a parallel scan takes longer than the claim of a thousand jobs.
		settings["plan_cache_mode"] = "force_generic_plan"
		settings["max_parallel_workers_per_gather"] = "0"
		for _, way := range []string{"seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"} {
			settings["enable_"+way] = "off"
		}
		if settings["synchronous_commit"] = "on"; p.sync == "normal" {
			settings["synchronous_commit"] = "off"
		}
	}
	for name, value := range settings {
		config.RuntimeParams[name] = value
	}
	config.StatementCacheCapacity, config.DialFunc = maxStatements, dialer().DialContext
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, explainConnect(err)
	}
	return &session{connection: &server{conn: conn, writes: for_ == forWriting}, streams: true}, nil
}
