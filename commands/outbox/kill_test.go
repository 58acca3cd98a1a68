package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/outbox"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// A shop writes an order and asks for its job in one transaction, sometimes rolls that back, and moves the
// rows into the ledger. A worker then counts each order, once.
func shopTables(db *sql.DB) error {
	for _, table := range []string{
		`CREATE TABLE IF NOT EXISTS orders (job text PRIMARY KEY)`,
		`CREATE TABLE IF NOT EXISTS effects (job text NOT NULL)`,
	} {
		if _, err := db.Exec(table); err != nil {
			return err
		}
	}
	return nil
}

// takeOrder takes an order, and rolls it back if keep is false.
func takeOrder(ctx context.Context, db *sql.DB, keep bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	id, err := outbox.Enqueue(ctx, tx, commands.Enqueue{Queue: "ship", Payload: []byte("x"),
		MaxAttempts: commands.MaxMaxAttempts})
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders (job) VALUES ($1)`, string(id)); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	return tx.Commit()
}

// shipper returns a handler that makes its effect in the shop's database.
func shipper(db *sql.DB) worker.Handler {
	return worker.HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		defer func() { _ = tx.Rollback() }()
		first, err := worker.Once(ctx, tx, job)
		if err != nil {
			return nil, err
		}
		if first {
			_, err := tx.ExecContext(ctx, `INSERT INTO effects (job) VALUES ($1)`, string(job.ID))
			if err != nil {
				return nil, err
			}
		}
		return nil, tx.Commit()
	})
}

// shop is the program that is killed. It never ends by its own will.
func shop(ledgerDSN, dsn string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx := context.Background()
	db, err := connect(dsn)
	if err != nil {
		fail(err)
	}
	store, err := ledger.Open(ctx, ledgerDSN)
	if err != nil {
		fail(err)
	}
	service := &commands.Service{Store: store}
	go func() { fail((&outbox.Relay{Service: service, From: db}).Run(ctx)) }()
	go func() {
		w := &worker.Worker{Service: service, Handler: shipper(db), Queues: []string{"ship"}, Slots: 2,
			Lease: time.Second}
		_, err := w.Run(ctx)
		fail(err)
	}()
	for n := 0; ; n++ {
		if err := takeOrder(ctx, db, n == 0 || rand.IntN(4) > 0); err != nil { // #nosec G404 -- a test
			fail(err)
		}
		if n == 0 {
			fmt.Println("open") // the parent counts its delay from here
		}
	}
}

// TestKilledShop kills the shop at random moments. Whenever that is, an order has a job if and only if it
// was committed, and its effect is made exactly once.
func TestKilledShop(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, dsn string) {
		address := ledgertest.New(t)
		db := openDB(t, dsn)
		if err := shopTables(db); err != nil {
			t.Fatal(err)
		}
		service := &commands.Service{Store: ledgertest.OpenAt(t, address)}
		for range ledgertest.Size(1, 2, 60) {
			killShop(t, address, dsn)
		}
		reopen(t, service, db)
		commandstest.Verify(t, service.Store)
	})
}

// killShop runs the shop for up to 60 ms and kills it.
func killShop(t *testing.T, address, dsn string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "shop", address, dsn)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 5)); n == 0 {
		t.Errorf("the shop did not open: %v", err)
	}
	time.Sleep(time.Duration(rand.IntN(60_000)) * time.Microsecond) // #nosec G404 -- the moment of the kill
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() >= 0 {
		t.Errorf("the shop ended before: %v", err)
	}
}

// reopen runs the shop once more, to the end of what there is to do, and checks it.
func reopen(t *testing.T, service *commands.Service, db *sql.DB) {
	t.Helper()
	ctx := context.Background()
	if _, err := (&outbox.Relay{Service: service, From: db}).Drain(ctx); err != nil {
		t.Fatal(err)
	}
	sweeper := &commands.Sweeper{Service: service, Actor: "sweeper:test", Grace: new(time.Duration)}
	for end := time.Now().Add(time.Minute); ; {
		if _, err := sweeper.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		w := &worker.Worker{Service: service, Handler: shipper(db), Queues: []string{"ship"}, Slots: 8,
			Drain: true}
		if _, err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if done(t, service) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("some jobs do not end")
		}
		time.Sleep(50 * time.Millisecond) // until the leases of killed shops have run out
	}
	orders, effects := column(t, db, "orders"), column(t, db, "effects")
	list := jobs(t, service)
	for _, j := range list {
		switch {
		case orders[string(j.ID)] != 1:
			t.Errorf("job %s has no order", j.ID)
		case effects[string(j.ID)] != 1:
			t.Errorf("the effect of job %s was made %d times", j.ID, effects[string(j.ID)])
		}
	}
	rows := left(t, db)
	if len(orders) != len(list) || len(effects) != len(list) || rows != 0 {
		t.Errorf("%d orders, %d jobs, %d effects, %d rows left", len(orders), len(list), len(effects), rows)
	}
	t.Logf("%d orders", len(orders))
	if len(orders) == 0 {
		t.Error("the shop took no order")
	}
}

func done(t *testing.T, s *commands.Service) bool {
	t.Helper()
	for _, j := range jobs(t, s) {
		if j.State != event.SucceededState {
			return false
		}
	}
	return true
}

// column counts how often each job is in a table.
func column(t *testing.T, db *sql.DB, table string) map[string]int {
	t.Helper()
	rows, err := db.Query(`SELECT job FROM ` + table) // #nosec G202 -- a name of this test
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	counts := make(map[string]int)
	for rows.Next() {
		var job string
		if err := rows.Scan(&job); err != nil {
			t.Fatal(err)
		}
		counts[job]++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return counts
}

// Once lets one of several attempts make the effect, even if they run at the same time, and none where the
// first was rolled back.
func TestOnceOfConcurrentAttempts(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, dsn string) {
		db := openDB(t, dsn)
		if err := shopTables(db); err != nil {
			t.Fatal(err)
		}
		job := projection.Job{ID: "01J9Z3NDEKTSV4RRFFQ69G5FAV", Token: "T1"}
		transact(t, db, func(tx *sql.Tx) bool {
			if first, err := worker.Once(t.Context(), tx, job); !first || err != nil {
				t.Errorf("%v, %v", first, err)
			}
			return false
		})
		var attempts sync.WaitGroup
		for range 8 {
			attempts.Go(func() {
				if _, err := shipper(db).Work(context.Background(), job); err != nil {
					t.Error(err)
				}
			})
		}
		attempts.Wait()
		if n := column(t, db, "effects")[string(job.ID)]; n != 1 {
			t.Errorf("the effect was made %d times", n)
		}
		if n, err := worker.ForgetOnce(t.Context(), db, time.Now().Add(-time.Hour)); n != 0 || err != nil {
			t.Errorf("forgot %d of the last hour, %v", n, err)
		}
		if n, err := worker.ForgetOnce(t.Context(), db, time.Now().Add(time.Hour)); n != 1 || err != nil {
			t.Errorf("forgot %d, %v", n, err)
		}
	})
}
