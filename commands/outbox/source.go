package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "modernc.org/sqlite" // the driver that Open uses for files

	"jobledger/commands/internal/usertx"
	"jobledger/ledger"
)

// Source is a database with an outbox that was opened by its address. On PostgreSQL a [Relay] of it is
// notified of new rows. Close it when done.
type Source struct {
	file      *sql.DB // nil: it is in PostgreSQL
	config    *pgx.ConnConfig
	listening atomic.Bool

	mu   sync.Mutex
	conn *pgx.Conn // nil: not open
}

// Open opens the database at dsn: the path of an SQLite file that exists, or "sqlite:PATH", or
// "postgres://…". It makes no tables: see [Migrate], which takes a Source too.
func Open(ctx context.Context, dsn string) (*Source, error) {
	s := &Source{}
	if ledger.IsServerAddress(dsn) {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		s.config = config
		if _, err = s.Exec(ctx, `SELECT 1`); err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		return s, nil
	}
	if err := ledger.CheckAddress(dsn); err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	path, err := filepath.Abs(strings.TrimPrefix(dsn, "sqlite:"))
	if err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	if _, err := os.Stat(path); err != nil { // the driver's error names no file
		return nil, fmt.Errorf("outbox: %w", err)
	}
	address := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(),
		RawQuery: "mode=rw&_pragma=busy_timeout(10000)"}
	if s.file, err = sql.Open("sqlite", address.String()); err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	s.file.SetMaxOpenConns(1)
	return s, nil
}

// Close closes the connections.
func (s *Source) Close() error {
	if s.file != nil {
		return s.file.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close(context.Background())
	s.conn = nil
	return err
}

// Exec runs a statement with the placeholders $1, $2, … and returns how many rows it changed.
func (s *Source) Exec(ctx context.Context, statement string, args ...any) (changed int64, err error) {
	err = s.use(ctx, func(conn usertx.Conn) (err error) {
		changed, err = conn.Exec(ctx, statement, args...)
		return err
	})
	return changed, err
}

// Query calls each for the rows of a query until it returns false or an error.
func (s *Source) Query(
	ctx context.Context, query string, each func(scan func(...any) error) (bool, error),
) error {
	return s.use(ctx, func(conn usertx.Conn) error { return conn.Query(ctx, query, each) })
}

// use calls fn with a connection, of which PostgreSQL takes one user at a time. A connection that was lost is
// opened again.
func (s *Source) use(ctx context.Context, fn func(usertx.Conn) error) error {
	if s.file != nil {
		conn, err := usertx.Of(s.file)
		if err != nil {
			return err
		}
		return fn(conn)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil || s.conn.IsClosed() {
		conn, err := pgx.ConnectConfig(ctx, s.config)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	conn, err := usertx.Of(s.conn)
	if err != nil {
		return err
	}
	return fn(conn)
}

// listen calls wake whenever PostgreSQL notifies of new rows, until stop is called. A lost connection is
// opened again, and wake is called then, since notifications may have been missed.
func (s *Source) listen(ctx context.Context, wake func()) (stop func()) {
	if s.file != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var listener sync.WaitGroup
	listener.Go(func() {
		for ctx.Err() == nil {
			if err := s.hear(ctx, wake); err != nil && ctx.Err() == nil {
				select {
				case <-time.After(longestPause):
				case <-ctx.Done():
				}
			}
		}
	})
	return func() {
		cancel()
		listener.Wait()
	}
}

// hear listens on a connection of its own until that breaks.
func (s *Source) hear(ctx context.Context, wake func()) error {
	config := s.config.Copy()
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { wake() }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer s.listening.Store(false)
	_, err = conn.Exec(ctx, `LISTEN jobledger_outbox`)
	if err == nil {
		s.listening.Store(true)
		wake()
		err = conn.PgConn().WaitForNotification(ctx)
		for err == nil {
			err = conn.PgConn().WaitForNotification(ctx)
		}
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestPause)
	defer cancel()
	return errors.Join(err, conn.Close(closing))
}
