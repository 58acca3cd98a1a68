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

// errNoPostgres is why a test that needs PostgreSQL is skipped.
var errNoPostgres = errors.New("no PostgreSQL here")

// Postgres returns the URL of a new, empty PostgreSQL database, which is dropped when the test ends. It
// stands on the server that JOBLEDGER_TEST_POSTGRES names by a URL whose user may create databases, otherwise
// on a server of this process, which the first call starts. Where there is none the test is skipped; where CI
// is true it fails.
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
	query.Del("dbname") // it would outrank the path
	query.Del("database")
	database.RawQuery = query.Encode()
	return database.String()
}

// CatchUp has the server of a ledger at dsn do now what it owes for all that was written so far, and would
// otherwise do while something else is measured: vacuum, statistics and a checkpoint, which only a superuser
// may ask for. A file owes nothing.
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

// shared is the one thing here that outlives a test: a server takes most of a second to start, a database
// hundredths.
var shared = sync.OnceValues(newCluster)

// unavailable ends a test that err leaves without a server.
func unavailable(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errNoPostgres) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	t.Fatal(err)
}

// administer calls do with a connection to server.
func administer(server *url.URL, do func(context.Context, *pgx.Conn) error) error {
	// Not the test's context, which has ended when its cleanups run.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, conn), conn.Close(ctx))
}

// Server is a PostgreSQL server of one test, which may stop it. Its methods end the test where they fail.
type Server struct {
	t       testing.TB
	cluster *cluster
}

// PostgresServer starts a server for this test alone. It is gone when the test ends. Where PostgreSQL is not
// installed the test is skipped; where CI is true it fails.
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

// URL returns the URL of an empty database of the server. It stays the same when the server is started again.
func (s *Server) URL() string { return s.cluster.url() }

// Stop ends the server as an administrator would: what runs is rolled back, connections get an error.
func (s *Server) Stop() {
	s.t.Helper()
	s.must(s.cluster.stop())
}

// Kill ends the server and all of its processes at once, as a crash would: connections break, and the next
// start recovers from the log. What was committed is kept.
func (s *Server) Kill() {
	s.t.Helper()
	s.must(s.cluster.kill())
}

// Start starts the server after Stop or Kill and returns when it takes connections.
func (s *Server) Start() {
	s.t.Helper()
	s.must(s.cluster.start())
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
