//go:build unix

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"jobledger/commands"
	"jobledger/commands/outbox"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// outboxes are the addresses of an empty database on each engine.
func outboxes(t *testing.T, folder string) map[string]string {
	return map[string]string{"sqlite": filepath.Join(folder, "shop.db"), "postgres": ledgertest.Postgres(t)}
}

// shopDB opens a program's own database, with the tables of the outbox.
func shopDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	driver, address := "sqlite", "file:"+dsn+"?_pragma=busy_timeout(10000)"
	if ledger.IsServerAddress(dsn) {
		driver, address = "pgx", dsn
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := outbox.Migrate(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

// asks writes n rows into the outbox and returns their ids.
func asks(t *testing.T, db *sql.DB, n int) (ids []string) {
	t.Helper()
	for range n {
		id, err := outbox.Enqueue(context.Background(), db, commands.Enqueue{Queue: "ship", Payload: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(id))
	}
	return ids
}

func rowsLeft(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow(`SELECT count(*) FROM jobledger_outbox`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestKilledRelay kills relay at each of its steps, and at the steps of the ledger's commit. When it has run
// to the end after that, each row is one job, in order.
func TestKilledRelay(t *testing.T) {
	t.Parallel()
	steps := []string{"outbox-read", "outbox-enqueued", "outbox-deleted", "commit", "committed"}
	for engine, dsn := range outboxes(t, t.TempDir()) {
		t.Run(engine, func(t *testing.T) {
			r := newRig(t)
			r.must(0, invoke("init"))
			db := shopDB(t, dsn)
			relay := invoke("relay", "--from", dsn, "--drain")
			var want []string
			for range ledgertest.Size(1, 1, 8) {
				for _, step := range steps {
					want = append(want, asks(t, db, 3)...)
					if got := r.do(relay.dyingAt(step)); !got.killed {
						t.Errorf("%s: it was not killed: %+v", step, got)
					}
					if strings.HasPrefix(step, "outbox") && step != "outbox-deleted" && rowsLeft(t, db) < 3 {
						t.Errorf("%s: rows were deleted before", step)
					}
				}
			}
			r.must(0, relay)
			var got []string
			for _, e := range r.history(ledgerFile) {
				if e.Kind() == event.KindEnqueued {
					got = append(got, string(e.Job))
				}
			}
			if strings.Join(got, " ") != strings.Join(want, " ") || rowsLeft(t, db) != 0 {
				t.Errorf("got  %q\nwant %q\n%d rows are left", got, want, rowsLeft(t, db))
			}
		})
	}
}

const ledgerFile = db // of a site; db is also a variable here

// relay goes on until it is interrupted, and moves what comes meanwhile.
func TestRelayUntilInterrupted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dsn := filepath.Join(s.dir, "shop.db")
	shop := shopDB(t, dsn)
	asks(t, shop, 2)
	cmd := s.command("relay", "--from", "shop.db")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); rowsLeft(t, shop) > 0; {
		if time.Now().After(end) {
			t.Fatal("rows are left")
		}
		time.Sleep(10 * time.Millisecond) // the interval of a poll
	}
	asks(t, shop, 1)
	for end := time.Now().Add(30 * time.Second); rowsLeft(t, shop) > 0; {
		if time.Now().After(end) {
			t.Fatal("rows are left")
		}
		time.Sleep(10 * time.Millisecond) // likewise
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("relay: %v", err)
	}
	if got := strings.Count(s.run("list", "--json"), `"queue":"ship"`); got != 3 {
		t.Errorf("%d jobs", got)
	}
	s.run("verify")
}

// relay --drain says what it did, in words and as JSON, and ends with 6 where rows are refused.
func TestRelayDrainSaysWhatItDid(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	shop := shopDB(t, filepath.Join(s.dir, "shop.db"))
	s.run("enqueue", "-q", "ship", "--key", "k", "first")
	asks(t, shop, 2)
	if got := s.run("relay", "--from", "shop.db", "--drain"); got != "2" {
		t.Errorf("printed %q", got)
	}
	refused := commands.Enqueue{Queue: "ship", Key: "k", Payload: []byte("second")}
	if _, err := outbox.Enqueue(t.Context(), shop, refused); err != nil {
		t.Fatal(err)
	}
	cmd := s.command("relay", "--from", "shop.db", "--drain", "--json")
	out, err := cmd.Output()
	var got struct {
		Jobs    int
		Refused []struct{ Job, Why string }
	}
	if cmd.ProcessState.ExitCode() != 6 || json.Unmarshal(out, &got) != nil || got.Jobs != 0 ||
		len(got.Refused) != 1 || !strings.Contains(got.Refused[0].Why, "another payload") {
		t.Errorf("got %s, %v", out, err)
	}
}
