package ledgertest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
)

// errNoPostgres is the reason for skipping a test that needs PostgreSQL.
var errNoPostgres = errors.New("no PostgreSQL here")

// Postgres returns the URL of a new, empty PostgreSQL database, which is dropped when the test ends. It is
// created on the server that JOBLEDGER_TEST_POSTGRES names by a URL whose user may create databases,
// otherwise on a server of this process, which the first call starts. Without PostgreSQL the test is skipped,
// or fails if CI is true.
func Postgres(t testing.TB) string {
	t.Helper()
	text := os.Getenv("JOBLEDGER_TEST_POSTGRES")
	if text == "" {
		c, err := shared()
		if err != nil {
			unavailable(t, err)
		}
		text = c.url()
	}
	server, err := url.Parse(text)
	if err != nil {
		t.Fatalf("JOBLEDGER_TEST_POSTGRES: %v", err)
	}
	if server.Path == "" || server.Path == "/" {
		server.Path = "/postgres"
	}
	name := "jobledger_test_" + strings.ToLower(rand.Text())
	err = administer(server, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0")
		return err
	})
	if err != nil {
		t.Fatalf("create a database: %v", err)
	}
	t.Cleanup(func() {
		err := administer(server, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
			return err
		})
		if err != nil {
			t.Errorf("drop a database: %v", err)
		}
	})

	database := *server
	database.Path, database.RawPath = "/"+name, ""
	query := database.Query()
	query.Del("dbname") // it would override the path
	query.Del("database")
	database.RawQuery = query.Encode()
	return database.String()
}

// CatchUp makes the server of a ledger at dsn do the maintenance that is due for what was written so far, and
// that would otherwise disturb a measurement: vacuum, statistics and a checkpoint, which needs a superuser.
// It does nothing for a file.
func CatchUp(t testing.TB, dsn string) {
	t.Helper()
	if !ledger.IsServerAddress(dsn) {
		return
	}
	database, err := url.Parse(dsn)
	if err == nil {
		err = administer(database, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "VACUUM (ANALYZE)")
			if err == nil {
				_, err = conn.Exec(ctx, "CHECKPOINT")
			}
			return err
		})
	}
	if err != nil {
		t.Fatalf("catch up: %v", err)
	}
}

// shared is the one server that outlives a test: starting a server takes most of a second, creating a
// database a few hundredths.
var shared = sync.OnceValues(newCluster)

// unavailable ends a test because err leaves it without a server.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errNoPostgres) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	t.Fatal(err)
}

// administer calls do with a connection to server.
func administer(server *url.URL, do func(context.Context, *pgx.Conn) error) error {
	// Not the test's context, which is cancelled before its cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, conn), conn.Close(ctx))
}

// Server is a PostgreSQL server of one test, which may stop it. If a method fails, it ends the test.
type Server struct {
	t       testing.TB
	cluster *cluster
}

// PostgresServer starts a server for this test alone. It is removed when the test ends. If PostgreSQL is not
// installed the test is skipped, or fails if CI is true.
func PostgresServer(t testing.TB) *Server {
	t.Helper()
	c, err := newCluster()
	if err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := c.end(); err != nil {
			t.Errorf("end PostgreSQL: %v", err)
		}
	})
	return &Server{t: t, cluster: c}
}

// URL returns the URL of an empty database of the server. It stays the same when the server is restarted.
func (s *Server) URL() string { return s.cluster.url() }

// Log returns the end of what the server has logged.
func (s *Server) Log() string { return s.cluster.log() }

// Stop ends the server as an administrator would: open transactions are rolled back, connections get an
// error.
func (s *Server) Stop() {
	s.t.Helper()
	s.must(s.cluster.stop())
}

// Kill ends the server and all of its processes at once, as a crash would: connections break, and the next
// start recovers from the write-ahead log. Committed data is kept.
func (s *Server) Kill() {
	s.t.Helper()
	s.must(s.cluster.kill())
}

// Start starts the server after Stop or Kill and returns when it accepts connections.
func (s *Server) Start() {
	s.t.Helper()
	s.must(s.cluster.start())
}

// Standby starts a server that has everything of this one before a commit is acknowledged.
func (s *Server) Standby() *Server {
	s.t.Helper()
	c, err := s.cluster.newStandby()
	s.must(err)
	s.t.Cleanup(func() {
		if err := c.end(); err != nil {
			s.t.Errorf("end a standby: %v", err)
		}
	})
	server, err := url.Parse(s.URL())
	s.must(err)
	s.must(administer(server, func(ctx context.Context, conn *pgx.Conn) (err error) {
		_, err = conn.Exec(ctx, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
		if err == nil {
			_, err = conn.Exec(ctx, `SELECT pg_reload_conf()`)
		}
		for following := false; err == nil && !following; time.Sleep(5 * time.Millisecond) { // pause of a poll
			const follows = `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')`
			err = conn.QueryRow(ctx, follows).Scan(&following)
		}
		return err
	}))
	return &Server{t: s.t, cluster: c}
}

// Promote makes a standby take over from its server, and returns when it can be written.
func (s *Server) Promote() {
	s.t.Helper()
	s.must(s.cluster.promote())
}

// Restart is Stop and Start.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.Start()
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
