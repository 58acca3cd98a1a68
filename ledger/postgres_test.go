package ledger_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// onPostgres returns a new ledger in PostgreSQL, whichever engine the run uses. It is checked when the test
// ends.
func onPostgres(t testing.TB) *ledger.Store {
	t.Helper()
	return openAt(t, ledgertest.Postgres(t))
}

// connect connects to the database at dsn without the store, as another program would.
func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	options := u.Query()
	for _, own := range []string{"schema", "sync", "listen", "tcp_user_timeout"} {
		options.Del(own)
	}
	u.RawQuery = options.Encode()
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// with adds an option to the address of a ledger.
func with(dsn, option string) string {
	if strings.Contains(dsn, "?") {
		return dsn + "&" + option
	}
	return dsn + "?" + option
}

func execute(t testing.TB, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// ask returns the single value that sql selects.
func ask[T any](t testing.TB, conn *pgx.Conn, sql string, args ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// eventually waits until the condition is true, which takes a few milliseconds unless the machine is busy.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(2 * time.Millisecond) { // pause of a poll
		if time.Now().After(end) {
			t.Fatalf("after 30s: not yet %s", what)
		}
	}
}

// backend returns the process id of the backend of the store's writer.
func backend(ctx context.Context, tx *ledger.Tx) (int64, error) {
	return number(ctx, tx, `SELECT pg_backend_pid()`)
}

// terminate ends a backend and waits until it is gone.
func terminate(t testing.TB, by *pgx.Conn, pid int64) {
	t.Helper()
	if !ask[bool](t, by, `SELECT pg_terminate_backend($1)`, pid) {
		t.Errorf("process %d is not there", pid)
	}
	eventually(t, "gone", func() bool {
		execute(t, by, `SELECT pg_stat_clear_snapshot()`) // a transaction would see for ever what it saw first
		return ask[int](t, by, `SELECT count(*) FROM pg_stat_activity WHERE pid = $1`, pid) == 0
	})
}

// takeLock takes the lock that a writer holds.
const takeLock = `LOCK TABLE jobledger.write_lock IN SHARE UPDATE EXCLUSIVE MODE`

// theLock is the key of the ledger's advisory lock, which a writer older than schema 15 holds.
const theLock = `(1785489266::bigint << 32) + 'jobledger'::regnamespace::oid::bigint`

// waiting returns the backends that wait for a lock, ordered by process id.
func waiting(t testing.TB, by *pgx.Conn) (pids []int64) {
	t.Helper()
	return ask[[]int64](t, by, `SELECT coalesce(array_agg(pid::bigint ORDER BY pid), '{}') FROM pg_locks
		WHERE NOT granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
}

// difference lists what occurs in one of two sorted lists more often than in the other.
func difference(got, want []string) string {
	count := make(map[string]int)
	for _, s := range got {
		count[s]++
	}
	for _, s := range want {
		count[s]--
	}
	var said []string
	for s, n := range count {
		if n != 0 {
			said = append(said, fmt.Sprintf("%s %+d", s, n))
		}
	}
	slices.Sort(said)
	return strings.Join(said[:min(len(said), 20)], ", ")
}
