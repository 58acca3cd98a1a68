package ledgertest_test

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger/ledgertest"
)

func TestPostgresDatabasesAreApartAndDropped(t *testing.T) {
	ledgertest.Slow(t)
	var gone string
	t.Run("two", func(t *testing.T) {
		a, b := ledgertest.Postgres(t), ledgertest.Postgres(t)
		gone = a
		one := connect(t, a)
		execute(t, one, "CREATE TABLE kept (n int)")
		execute(t, connect(t, b), "CREATE TABLE kept (n int)")
		execute(t, one, "INSERT INTO kept VALUES (1)")
		if got := query(t, connect(t, b), "SELECT count(*)::text FROM kept"); got != "0" {
			t.Errorf("%s rows in the other database, want 0", got)
		}
		// A connection that a test left open does not prevent it.
		if _, err := pgx.Connect(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	})
	if gone == "" {
		t.Skip("no PostgreSQL is installed")
	}
	if conn, err := pgx.Connect(t.Context(), gone); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the database is still there after its test")
	}
}

func TestPostgresServerKeepsWhatIsCommitted(t *testing.T) {
	ledgertest.Slow(t)
	s := ledgertest.PostgresServer(t)
	before := s.URL()
	conn := connect(t, before)
	execute(t, conn, "CREATE TABLE kept (n int)")
	execute(t, conn, "INSERT INTO kept VALUES (1)")
	s.Kill()
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a connection outlives Kill")
	}
	if conn, err := pgx.Connect(t.Context(), before); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a killed server takes a connection")
	}
	s.Start()
	execute(t, connect(t, s.URL()), "INSERT INTO kept VALUES (2)")
	s.Restart()
	if got := query(t, connect(t, s.URL()),
		"SELECT string_agg(n::text, ',' ORDER BY n) FROM kept"); got != "1,2" {
		t.Errorf("after Kill and Restart the rows are %s, want 1,2", got)
	}
	if got := s.URL(); got != before {
		t.Errorf("the URL is now %s, was %s", got, before)
	}

	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("postgres", "guess")
	if conn, err := pgx.Connect(t.Context(), u.String()); err == nil {
		_ = conn.Close(t.Context())
		t.Error("another user of the machine gets in without the password")
	}
}

// A test that is killed cannot clean up.
func TestPostgresServerDiesWithItsProcess(t *testing.T) {
	const held = "LEDGERTEST_HOLD_POSTGRES"
	if os.Getenv(held) != "" {
		s := ledgertest.PostgresServer(t)
		os.Stdout.WriteString("\nat " + s.URL() + "\n")
		time.Sleep(time.Minute) // killed long before
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), held+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	var at, said string
	for lines := bufio.NewScanner(out); at == "" && lines.Scan(); {
		said += lines.Text() + "\n"
		if rest, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			at = rest
		}
	}
	if at == "" {
		if err := child.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		t.Skip("no PostgreSQL is installed")
	}
	conn := connect(t, at)
	folder := query(t, conn, "SHOW data_directory")
	if _, err := os.Stat(folder); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for {
		_, err := os.Stat(folder)
		there, dialed := net.Dial("tcp", u.Host)
		if dialed == nil {
			_ = there.Close()
		}
		if errors.Is(err, fs.ErrNotExist) && dialed != nil {
			t.Logf("gone after %v", time.Since(start).Round(time.Millisecond))
			return
		}
		if time.Since(start) > 10*time.Second {
			t.Fatalf("after 10s: folder: %v; server: %v", err, dialed)
		}
		time.Sleep(10 * time.Millisecond) // pause of a poll
	}
}

func connect(t *testing.T, at string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func query(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	var text string
	if err := conn.QueryRow(t.Context(), sql).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}
