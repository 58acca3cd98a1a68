package inbox_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/commands"
	"jobledger/commands/inbox"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// An idle worker hears of a commit, without a relay and without waiting for its poll of 5 s.
func TestInboxWakesIdleWorker(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, service *commands.Service, db *sql.DB) {
		started := make(chan event.JobID, 8)
		w := &worker.Worker{Service: service, Queues: []string{"ship"}, Slots: 4,
			Handler: worker.HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
				started <- job.ID
				return nil, nil
			})}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := w.Run(ctx)
			ended <- err
		}()
		var fastest time.Duration
		for range 5 {
			began := time.Now()
			id := enqueue(t, db, commands.Enqueue{Queue: "ship"})
			select {
			case got := <-started:
				if got != id {
					t.Errorf("started %s, want %s", got, id)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("no worker heard of the row")
			}
			if took := time.Since(began); fastest == 0 || took < fastest {
				fastest = took
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if fastest > 2*time.Second {
			t.Errorf("the fastest of five took %s", fastest)
		}
	})
}

// counted counts the write transactions of a ledger by its clock, which each of them reads once.
func counted(store *ledger.Store) *atomic.Int64 {
	var n atomic.Int64
	store.Now = func() time.Time {
		n.Add(1)
		return time.Now()
	}
	return &n
}

// While the inbox is empty a turn costs one transaction, as it did without an inbox, and a process that has
// just looked does not ask the database at all.
func TestInboxEmptyCostsNothing(t *testing.T) {
	t.Parallel()
	store := ledgertest.OpenAt(t, t.TempDir()+"/jobs.db")
	transactions := counted(store)
	service := &commands.Service{Store: store}
	request := commands.ClaimRequest{Queues: []string{"ship"}, Worker: event.Worker{Name: "w", Boot: "b"}}
	if _, err := service.Claim(t.Context(), request); err != nil { // which looks, as the first one
		t.Fatal(err)
	}
	looks := 0
	for range 100 {
		before := transactions.Load()
		if _, err := service.Claim(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if n := transactions.Load() - before; n != 1 {
			t.Errorf("a turn has %d transactions", n)
		}
		if look, _ := store.InboxDue(); look {
			looks++
		}
	}
	if looks > 5 { // once a second
		t.Errorf("%d of 100 turns would have looked", looks)
	}
}

// A member of jobledger_enqueuer can insert rows, which become jobs in its name, and nothing else.
func TestInboxRole(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skipf("no psql: %v", err)
	}
	at := ledgertest.PostgresServer(t).URL()
	service := &commands.Service{Store: ledgertest.OpenAt(t, at)}
	ctx := t.Context()
	owner, err := pgx.Connect(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	for range 2 { // it may be run again
		script := exec.CommandContext(ctx, psql, "-X", "-q", "-f", "../../schema/postgres/roles.sql",
			at) // #nosec G204 -- psql, as it is installed here
		if out, err := script.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	_, err = owner.Exec(ctx, `CREATE ROLE shop LOGIN PASSWORD 'x'; GRANT jobledger_enqueuer TO shop`)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("shop", "x")
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id, err := inbox.Enqueue(ctx, tx, commands.Enqueue{Queue: "ship", Payload: []byte("x")})
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../schema/postgres/objects.txt")
	if err != nil {
		t.Fatal(err)
	}
	refused := []string{`INSERT INTO inbox (id, job, role) VALUES ('01J9Z3NDEKTSV4RRFFQ69G5FAV', '{}', 'ceo')`,
		`INSERT INTO inbox (id, job, at) VALUES ('01J9Z3NDEKTSV4RRFFQ69G5FAV', '{}', 1)`,
		`INSERT INTO inbox (id, job) VALUES ('01J9Z3NDEKTSV4RRFFQ69G5FAV', '{}') RETURNING n`,
		`INSERT INTO inbox (id, job) VALUES ('short', '{}')`,
		`INSERT INTO inbox (id, job, payload)
			VALUES ('01J9Z3NDEKTSV4RRFFQ69G5FAV', '{}', repeat('x', 1048577)::bytea)`,
		`UPDATE inbox SET job = '{}'`, `DELETE FROM inbox`, `TRUNCATE inbox`, `SET ROLE jobledger_worker`,
		`ALTER TABLE inbox DISABLE TRIGGER inbox_wake`, `CREATE TABLE mine (n int)`}
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(line, "\t")
		if name, _, _ := strings.Cut(rest, "\t"); kind == "table" || kind == "view" {
			refused = append(refused, `SELECT 1 FROM `+name, `INSERT INTO `+name+` DEFAULT VALUES`)
		}
	}
	for _, statement := range refused {
		if tag, err := conn.Exec(ctx, `SET search_path = jobledger; `+statement); err == nil {
			t.Errorf("%s: %s", statement, tag)
		}
	}
	sweep(t, service)
	history, err := service.History(ctx, id)
	if err != nil || history[0].Actor != "inbox:shop" || len(jobs(t, service)) != 1 {
		t.Errorf("%v, %v", history, err)
	}
}
