package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/commands"
	"jobledger/commands/outbox"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// Jobs exist for the transactions that committed, in the order of their rows, with the ids that Enqueue
// returned, and the outbox is empty after that.
func TestOutboxMovesCommittedRowsInOrder(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, dsn string) {
		db, service := openDB(t, dsn), verified(t)
		var want []string
		n := ledgertest.Size(40, 60, 500)
		for i := range n {
			transact(t, db, func(tx *sql.Tx) bool {
				for part := range 2 {
					payload := fmt.Sprintf("%d.%d", i, part)
					id, err := outbox.Enqueue(t.Context(), tx, commands.Enqueue{Queue: "ship", Payload: []byte(payload)})
					if err != nil {
						t.Fatal(err)
					}
					if i%3 != 0 {
						want = append(want, string(id)+" "+payload)
					}
				}
				return i%3 != 0
			})
		}
		relay := &outbox.Relay{Service: service, From: db, Actor: "shop"}
		moved, err := relay.Drain(t.Context())
		if err != nil || moved.Jobs != len(want) || moved.Existing != 0 || left(t, db) != 0 {
			t.Errorf("moved %+v, %v, want %d jobs; %d rows are left", moved, err, len(want), left(t, db))
		}
		var got []string
		for _, j := range jobs(t, service) {
			got = append(got, string(j.ID)+" "+string(j.Payload))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if moved, err = relay.Drain(t.Context()); err != nil || moved.Jobs != 0 {
			t.Errorf("again: %+v, %v", moved, err)
		}
	})
}

// A job comes through the outbox with every field as it was asked for.
func TestOutboxKeepsEveryField(t *testing.T) {
	db, service := openDB(t, t.TempDir()+"/shop.db"), verified(t)
	held, err := service.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "a", Hold: true},
		commands.Enqueue{Queue: "a", Hold: true})
	if err != nil {
		t.Fatal(err)
	}
	asked := commands.Enqueue{ID: "01J9Z3NDEKTSV4RRFFQ69G5FAV", Queue: "ship", Payload: []byte("\x00\xff"),
		Key: "k", UniqueWhile: event.WhileQueued, OnDuplicate: commands.IgnoreDuplicate, Priority: -7,
		RunAt: time.Now().Add(time.Hour).Truncate(time.Microsecond), MaxAttempts: 9, MaxRuntime: 90 * time.Second,
		Version: "v2", Requires: []string{"gpu"}, Tags: map[string]string{"a": "ü"}, Group: "g",
		Backoff: event.Backoff{Min: time.Second, Max: time.Minute, Factor: 1.5},
		After:   []commands.Dependency{{Job: held[0].ID, On: event.OnFinished}},
		Before:  []commands.Dependency{{Job: held[1].ID, On: event.OnFailed}}, Hold: true}
	for i, v := 0, reflect.ValueOf(asked); i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Form" { // which no outbox takes
			t.Fatalf("the test leaves %s out", name)
		}
	}
	direct := asked
	direct.ID, direct.Key = "01J9Z3NDEKTSV4RRFFQ69G5FB0", "k2"
	if _, err := service.Enqueue(t.Context(), "outbox", direct); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second is the same request
		if id, err := outbox.Enqueue(t.Context(), db, asked); err != nil || string(id) != asked.ID {
			t.Fatalf("%s, %v", id, err)
		}
	}
	moved, err := (&outbox.Relay{Service: service, From: db}).Drain(t.Context())
	if err != nil || moved.Jobs != 1 || moved.Refused != nil {
		t.Fatalf("moved %+v, %v", moved, err)
	}
	var bodies []event.Enqueued
	err = service.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{Kinds: []event.Kind{event.KindEnqueued}}) {
			if err != nil {
				return err
			}
			if b := *e.Body.(*event.Enqueued); b.Queue == "ship" && e.Actor == "outbox" {
				b.PayloadSHA256, b.Key = "", "" // the digest is salted
				bodies = append(bodies, b)
			}
		}
		return nil
	})
	if err != nil || len(bodies) != 2 || !reflect.DeepEqual(bodies[0], bodies[1]) {
		t.Errorf("%v\n%+v", err, bodies)
	}
}

// What the ledger does not take stays in the outbox with the reason, and holds up nothing.
func TestOutboxKeepsWhatIsRefused(t *testing.T) {
	eachEngine(t, func(t *testing.T, dsn string) {
		db, service := openDB(t, dsn), verified(t)
		taken := commands.Enqueue{Queue: "ship", Key: "order-1", Payload: []byte("first")}
		if _, err := service.Enqueue(t.Context(), "cli:test", taken); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range []commands.Enqueue{
			{Queue: "ship", Payload: []byte("a")},
			{Queue: "ship", Payload: []byte("b"), Key: "order-1"},
			taken,
			{Queue: "ship", Payload: []byte("c"), After: []commands.Dependency{{Job: "01J9Z3NDEKTSV4RRFFQ69G5FAV"}}},
			{Queue: "ship", Payload: []byte("d")},
		} {
			id, err := outbox.Enqueue(t.Context(), db, e)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, string(id))
		}
		const later = `INSERT INTO jobledger_outbox (id, job) VALUES ('later', '{"queue":"q","new":1}')`
		if _, err := db.Exec(later); err != nil {
			t.Fatal(err)
		}
		relay := &outbox.Relay{Service: service, From: db}
		moved, err := relay.Drain(t.Context())
		if err != nil || moved.Jobs != 2 || moved.Existing != 1 || len(moved.Refused) != 3 {
			t.Errorf("moved %+v, %v", moved, err)
		}
		refused, err := outbox.Refused(t.Context(), db)
		if err != nil || len(refused) != 3 || refused[0].ID != ids[1] || refused[1].ID != ids[3] ||
			!strings.Contains(refused[0].Why, "another payload") || !strings.Contains(refused[2].Why, "new") {
			t.Errorf("refused %+v, %v", refused, err)
		}
		if moved, err = relay.Drain(t.Context()); err != nil || len(moved.Refused) != 0 {
			t.Errorf("tried again without being asked: %+v, %v", moved, err)
		}
		if ok, err := outbox.Retry(t.Context(), db, ids[1]); !ok || err != nil {
			t.Errorf("retry: %v, %v", ok, err)
		}
		if moved, err = relay.Drain(t.Context()); err != nil || len(moved.Refused) != 1 {
			t.Errorf("tried again: %+v, %v", moved, err)
		}
		if n := len(jobs(t, service)); n != 3 || left(t, db) != 3 {
			t.Errorf("%d jobs, %d rows", n, left(t, db))
		}
	})
}

// A relay that read rows, and was stopped while another moved them, changes nothing: not where the job was
// erased meanwhile, and not where the number of a row was used again.
func TestOutboxRepeatIsRecognized(t *testing.T) {
	db, service := openDB(t, t.TempDir()+"/shop.db"), verified(t)
	relay := &outbox.Relay{Service: service, From: db}
	again := func(id event.JobID, state string) {
		t.Helper()
		asked := commands.Enqueue{ID: string(id), Queue: "ship", Payload: []byte("x")}
		if _, err := outbox.Enqueue(t.Context(), db, asked); err != nil {
			t.Fatal(err)
		}
		moved, err := relay.Drain(t.Context())
		if err != nil || moved.Jobs != 0 || moved.Existing != 1 || left(t, db) != 0 {
			t.Errorf("of a job that is %s: %+v, %v", state, moved, err)
		}
	}
	id, err := outbox.Enqueue(t.Context(), db, commands.Enqueue{Queue: "ship", Payload: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	if moved, err := relay.Drain(t.Context()); err != nil || moved.Jobs != 1 {
		t.Fatal(moved, err)
	}
	again(id, "queued")
	for _, c := range []commands.Command{commands.Cancel{}, commands.Erase{}} {
		if _, err := service.Apply(t.Context(), "cli:ann", id, c); err != nil {
			t.Fatal(err)
		}
		again(id, fmt.Sprintf("after %T", c))
	}
}

func TestOutboxRefusesWhatIsInvalid(t *testing.T) {
	db := openDB(t, t.TempDir()+"/shop.db")
	transact(t, db, func(tx *sql.Tx) bool {
		for _, e := range []commands.Enqueue{{}, {Queue: "A"}, {Queue: "a", ID: "1"}, {Queue: "a", Priority: 101}} {
			if _, err := outbox.Enqueue(t.Context(), tx, e); !errors.Is(err, commands.ErrInvalid) {
				t.Errorf("%+v: %v", e, err)
			}
		}
		return true
	})
	if _, err := outbox.Enqueue(t.Context(), 1, commands.Enqueue{Queue: "a"}); err == nil {
		t.Error("a number is taken for a transaction")
	}
	if left(t, db) != 0 {
		t.Error("rows were written")
	}
}

// pgx.Tx is a transaction too, and several programs may make the tables at the same time.
func TestOutboxWithPgx(t *testing.T) {
	dsn, service := ledgertest.Postgres(t), verified(t)
	var programs sync.WaitGroup
	for range 4 {
		programs.Go(func() {
			db, err := connect(dsn)
			if err != nil {
				t.Error(err)
				return
			}
			_ = db.Close()
		})
	}
	programs.Wait()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, commit := range []bool{false, true} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := outbox.Migrate(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		asked := commands.Enqueue{Queue: "ship", Payload: []byte("x")}
		if _, err := outbox.Enqueue(t.Context(), tx, asked); err != nil {
			t.Fatal(err)
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	moved, err := (&outbox.Relay{Service: service, From: conn}).Drain(t.Context())
	if err != nil || moved.Jobs != 1 || len(jobs(t, service)) != 1 {
		t.Errorf("moved %+v, %v", moved, err)
	}
}

// Payloads of the largest size go through in several steps.
func TestOutboxMovesLargePayloads(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, dsn string) {
		db, service := openDB(t, dsn), verified(t)
		const n = 11
		for i := range n {
			payload := make([]byte, commands.MaxPayload)
			payload[0] = byte(i)
			asked := commands.Enqueue{Queue: "ship", Payload: payload}
			if _, err := outbox.Enqueue(t.Context(), db, asked); err != nil {
				t.Fatal(err)
			}
		}
		steps := 0
		relay := &outbox.Relay{Service: service, From: db, Moved: func(outbox.Moved) { steps++ }}
		if moved, err := relay.Drain(t.Context()); err != nil || moved.Jobs != n || steps != 2 {
			t.Errorf("moved %+v in %d steps, %v", moved, steps, err)
		}
		for i, j := range jobs(t, service) {
			if len(j.Payload) != commands.MaxPayload || j.Payload[0] != byte(i) {
				t.Errorf("job %d has %d bytes", i, len(j.Payload))
			}
		}
	})
}

// TestOutboxTakesManyJobs: many jobs are in order, all or none, and in few statements.
func TestOutboxTakesManyJobs(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, dsn string) {
		db, service, ctx := openDB(t, dsn), verified(t), t.Context()
		asked := make([]commands.Enqueue, 250)
		for i := range asked {
			asked[i] = commands.Enqueue{Queue: "q", Payload: fmt.Append(nil, i)}
		}
		asked[249].Payload = nil
		var ids []event.JobID
		transact(t, db, func(tx *sql.Tx) bool {
			bad := append(slices.Clone(asked), commands.Enqueue{})
			_, err := outbox.EnqueueMany(ctx, tx, bad...)
			if !errors.Is(err, commands.ErrInvalid) || !strings.Contains(err.Error(), "job 251 of 251: ") {
				t.Errorf("an invalid job: %v", err)
			}
			if none, err := outbox.EnqueueMany(ctx, tx); len(none) > 0 || err != nil {
				t.Errorf("no job: %v, %v", none, err)
			}
			ids, err = outbox.EnqueueMany(ctx, tx, asked...)
			if err != nil {
				t.Fatal(err)
			}
			return true
		})
		moved, err := (&outbox.Relay{Service: service, From: db}).Drain(ctx)
		if err != nil || moved.Jobs != len(asked) {
			t.Fatalf("%+v, %v", moved, err)
		}
		for i, j := range jobs(t, service) {
			if j.ID != ids[i] || string(j.Payload) != string(asked[i].Payload) {
				t.Fatalf("job %d is %s with %q, want %s", i, j.ID, j.Payload, ids[i])
			}
		}
	})
}

// The file of a ledger takes no other tables.
func TestOutboxIsNotInLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	store, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := outbox.Migrate(t.Context(), db); !errors.Is(err, outbox.ErrLedger) {
		t.Error(err)
	}
	var tables int
	err = db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name LIKE 'jobledger_%'`).Scan(&tables)
	if err != nil || tables != 0 {
		t.Errorf("%d tables, %v", tables, err)
	}
}
