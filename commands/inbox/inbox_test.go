package inbox_test

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"jobledger/commands"
	"jobledger/commands/inbox"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// Jobs exist for the transactions that committed, in the order of their rows, with the ids that Enqueue
// returned, and the inbox is empty after that.
func TestInboxMovesCommittedRowsInOrder(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, service *commands.Service, db *sql.DB) {
		if _, err := db.Exec(`CREATE TABLE shop_orders (job text PRIMARY KEY)`); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := range ledgertest.Size(20, 150, 400) {
			transact(t, db, func(tx *sql.Tx) bool {
				for part := range 2 {
					payload := fmt.Sprintf("%d.%d", i, part)
					id, err := inbox.Enqueue(t.Context(), tx, commands.Enqueue{Queue: "ship", Payload: []byte(payload)})
					if err == nil {
						_, err = tx.Exec(`INSERT INTO shop_orders (job) VALUES ($1)`, string(id))
					}
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
		if n := len(jobs(t, service)); n != 0 {
			t.Errorf("%d jobs before anything moved them", n)
		}
		sweep(t, service)
		var got []string
		for _, j := range jobs(t, service) {
			got = append(got, string(j.ID)+" "+string(j.Payload))
		}
		if rows, refused := left(t, service); !slices.Equal(got, want) || rows+refused != 0 {
			t.Errorf("%d rows, %d refused\ngot  %q\nwant %q", rows, refused, got, want)
		}
		var orders int
		if err := db.QueryRow(`SELECT count(*) FROM shop_orders`).Scan(&orders); err != nil || orders != len(want) {
			t.Errorf("%d orders, %d jobs, %v", orders, len(want), err)
		}
	})
}

// A claim moves what was committed before it, and returns it.
func TestInboxClaimMoves(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, service *commands.Service, db *sql.DB) {
		request := commands.ClaimRequest{Queues: []string{"ship"}, Limit: 4,
			Worker: event.Worker{Name: "w", Boot: "b"}}
		ready, _, err := service.Ready(t.Context(), request)
		if ready || err != nil {
			t.Fatalf("ready: %v, %v", ready, err)
		}
		ids := []event.JobID{enqueue(t, db, commands.Enqueue{Queue: "ship"}),
			enqueue(t, db, commands.Enqueue{Queue: "ship"})}
		if ready, _, err = service.Ready(t.Context(), request); !ready || err != nil {
			t.Errorf("ready with rows: %v, %v", ready, err)
		}
		service.Store.NoteInbox() // as the listener of a worker does
		claimed, err := service.Claim(t.Context(), request)
		if err != nil || len(claimed) != 2 || claimed[0].ID != ids[0] || claimed[1].ID != ids[1] {
			t.Errorf("claimed %v, %v", claimed, err)
		}
		history, err := service.History(t.Context(), ids[0])
		if err != nil || !strings.HasPrefix(history[0].Actor, "inbox") {
			t.Errorf("history: %v, %v", history, err)
		}
	})
}

// A job comes through the inbox with every field as it was asked for.
func TestInboxKeepsEveryField(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, service *commands.Service, db *sql.DB) {
		held, err := service.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "a", Hold: true},
			commands.Enqueue{Queue: "a", Hold: true})
		if err != nil {
			t.Fatal(err)
		}
		asked := commands.Enqueue{ID: "01J9Z3NDEKTSV4RRFFQ69G5FAV", Queue: "ship", Payload: []byte("\x00\xff"),
			Key: "k", UniqueWhile: event.WhileQueued, OnDuplicate: commands.IgnoreDuplicate, Priority: -7,
			RunAt:       time.Now().Add(time.Hour).Truncate(time.Microsecond),
			MaxAttempts: 9, MaxRuntime: 90 * time.Second,
			Version: "v2", Requires: []string{"gpu"}, Tags: map[string]string{"a": "ü"}, Group: "g",
			Backoff: event.Backoff{Min: time.Second, Max: time.Minute, Factor: 1.5},
			After:   []commands.Dependency{{Job: held[0].ID, On: event.OnFinished}},
			Before:  []commands.Dependency{{Job: held[1].ID, On: event.OnFailed}}, Hold: true}
		for i, v := 0, reflect.ValueOf(asked); i < v.NumField(); i++ {
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Form" { // which no inbox takes
				t.Fatalf("the test leaves %s out", name)
			}
		}
		direct := asked
		direct.ID, direct.Key = "01J9Z3NDEKTSV4RRFFQ69G5FB0", "k2"
		if _, err := service.Enqueue(t.Context(), "inbox", direct); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second is the same request
			if id := enqueue(t, db, asked); string(id) != asked.ID {
				t.Fatal(id)
			}
		}
		sweep(t, service)
		enqueue(t, db, asked) // and so is one that comes later
		sweep(t, service)
		var bodies []event.Enqueued
		err = service.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			for e, err := range tx.Events(t.Context(), ledger.Filter{Kinds: []event.Kind{event.KindEnqueued}}) {
				if err != nil {
					return err
				}
				if b := *e.Body.(*event.Enqueued); b.Queue == "ship" && strings.HasPrefix(e.Actor, "inbox") {
					b.PayloadSHA256, b.Key = "", "" // the digest is salted
					bodies = append(bodies, b)
				}
			}
			return nil
		})
		if err != nil || len(bodies) != 2 || !reflect.DeepEqual(bodies[0], bodies[1]) {
			t.Errorf("%v\n%+v", err, bodies)
		}
		if rows, refused := left(t, service); rows+refused != 0 {
			t.Errorf("%d rows, %d refused", rows, refused)
		}
	})
}

// What the ledger does not take is kept with the reason, and holds up nothing. A key that another job has is
// that job, also for what waits for the row.
func TestInboxRefused(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, service *commands.Service, db *sql.DB) {
		taken := commands.Enqueue{Queue: "ship", Key: "order-1", Payload: []byte("first")}
		if _, err := service.Enqueue(t.Context(), "cli:test", taken); err != nil {
			t.Fatal(err)
		}
		var ids []event.JobID
		for _, e := range []commands.Enqueue{
			{Queue: "ship", Payload: []byte("a")},
			{Queue: "ship", Payload: []byte("b"), Key: "order-1"},
			{Queue: "ship", Payload: []byte("c"), After: []commands.Dependency{{Job: "01J9Z3NDEKTSV4RRFFQ69G5FAV"}}},
			{Queue: "ship", Payload: []byte("d")},
		} {
			ids = append(ids, enqueue(t, db, e))
		}
		transact(t, db, func(tx *sql.Tx) bool {
			two, err := inbox.EnqueueMany(t.Context(), tx, taken, commands.Enqueue{Queue: "ship"})
			if err != nil {
				t.Fatal(err)
			}
			after := commands.Enqueue{Queue: "ship", After: []commands.Dependency{{Job: two[0]}, {Job: two[1]}}}
			if _, err := inbox.Enqueue(t.Context(), tx, after); err != nil {
				t.Fatal(err)
			}
			return true
		})
		table := "inbox"
		if ledger.IsServerAddress(service.Store.DSN()) {
			table = "jobledger.inbox"
		}
		for _, job := range []string{`{"queue":"q","new":1}`, `[`, `{"queue":"q","requires":["jl:argv"]}`,
			`{"queue":"Q"}`, `{"queue":"q","form":"argv"}`} {
			_, err := db.Exec(`INSERT INTO `+table+` (id, job) VALUES ($1, $2)`, // #nosec G202 -- a name of this test
				"01J9Z3NDEKTSV4RRFFQ69G5FAW", job)
			if err != nil {
				t.Fatal(err)
			}
		}
		sweep(t, service)
		list, err := inbox.Refused(t.Context(), service.Store)
		if err != nil || len(list) != 7 || list[0].ID != ids[1] || list[1].ID != ids[2] ||
			!strings.Contains(list[0].Why, "another payload") || !strings.Contains(list[1].Why, "no such job") ||
			!strings.Contains(list[2].Why, `"new"`) || time.Since(list[0].At) > time.Minute {
			t.Errorf("refused %+v, %v", list, err)
		}
		if n := len(jobs(t, service)); n != 5 {
			t.Errorf("%d jobs", n)
		}
		if ok, err := inbox.Retry(t.Context(), service.Store, ids[2]); !ok || err != nil {
			t.Errorf("retry: %v, %v", ok, err)
		}
		if rows, refused := left(t, service); rows != 1 || refused != 6 {
			t.Errorf("tried again: %d rows, %d refused", rows, refused)
		}
		known := commands.Enqueue{ID: "01J9Z3NDEKTSV4RRFFQ69G5FAV", Queue: "other"}
		if _, err := service.Enqueue(t.Context(), "cli:test", known); err != nil {
			t.Fatal(err)
		}
		sweep(t, service) // now there is the job that it waits for
		if ok, err := inbox.Drop(t.Context(), service.Store, ids[1]); !ok || err != nil {
			t.Errorf("drop: %v, %v", ok, err)
		}
		if ok, err := inbox.Drop(t.Context(), service.Store, ids[1]); ok || err != nil {
			t.Errorf("drop again: %v, %v", ok, err)
		}
		if rows, refused := left(t, service); rows != 0 || refused != 5 || len(jobs(t, service)) != 7 {
			t.Errorf("%d rows, %d refused, %d jobs", rows, refused, len(jobs(t, service)))
		}
	})
}

func TestInboxRefusesWhatIsInvalid(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, service *commands.Service, db *sql.DB) {
		transact(t, db, func(tx *sql.Tx) bool {
			for _, e := range []commands.Enqueue{{}, {Queue: "A"}, {Queue: "a", ID: "1"}, {Queue: "a", Priority: 101},
				{Queue: "a", Form: event.FormArgv, Payload: []byte("x")}, {Queue: "a", Payload: make([]byte, 1<<20+1)}} {
				if _, err := inbox.Enqueue(t.Context(), tx, e); !errors.Is(err, commands.ErrInvalid) {
					t.Errorf("%+v: %v", e.Queue, err)
				}
			}
			_, err := inbox.Enqueue(t.Context(), tx, commands.Enqueue{Queue: "a"}) // the transaction can go on
			return err == nil
		})
		if _, err := inbox.Enqueue(t.Context(), db, commands.Enqueue{Queue: "a"}); !errors.Is(err,
			inbox.ErrNoTransaction) {
			t.Errorf("a pool: %v", err)
		}
		if _, err := inbox.Enqueue(t.Context(), 1, commands.Enqueue{Queue: "a"}); err == nil {
			t.Error("a number is taken for a transaction")
		}
		if rows, _ := left(t, service); rows != 1 {
			t.Errorf("%d rows", rows)
		}
	})
}

// A step takes no more than 8 MiB, and a backlog of more rows than a step has is moved by one sweep.
func TestInboxMovesLargeBacklog(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, service *commands.Service, db *sql.DB) {
		large, small := ledgertest.Size(10, 20, 20), ledgertest.Size(300, 300, 1000)
		transact(t, db, func(tx *sql.Tx) bool {
			list := make([]commands.Enqueue, 0, large+small)
			for range large {
				list = append(list, commands.Enqueue{Queue: "large", Payload: make([]byte, 1<<20)})
			}
			for range small {
				list = append(list, commands.Enqueue{Queue: "small"})
			}
			_, err := inbox.EnqueueMany(t.Context(), tx, list...)
			return err == nil
		})
		sweep(t, service)
		if rows, refused := left(t, service); rows+refused != 0 {
			t.Errorf("%d rows, %d refused", rows, refused)
		}
		var n int
		err := service.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			for _, err := range tx.Events(t.Context(), ledger.Filter{Kinds: []event.Kind{event.KindEnqueued}}) {
				if err != nil {
					return err
				}
				n++
			}
			return nil
		})
		if err != nil || n != large+small {
			t.Errorf("%d jobs of %d, %v", n, large+small, err)
		}
	})
}

// pgx.Tx is a transaction too, and the ledger may be in another schema.
func TestInboxWithPgx(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	join := "?"
	if strings.Contains(dsn, "?") {
		join = "&"
	}
	service := &commands.Service{Store: ledgertest.OpenAt(t, dsn+join+"schema=billing")}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, commit := range []bool{false, true} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inbox.Enqueue(t.Context(), inbox.In(tx, "billing"), commands.Enqueue{Queue: "q"}); err != nil {
			t.Fatal(err)
		}
		if commit {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sweep(t, service)
	if n := len(jobs(t, service)); n != 1 {
		t.Errorf("%d jobs", n)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inbox.Enqueue(t.Context(), tx, commands.Enqueue{Queue: "q"}); err == nil ||
		!strings.Contains(err.Error(), "does not exist") {
		t.Errorf("without a ledger: %v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
}
