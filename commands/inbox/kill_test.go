package inbox_test

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
	"jobledger/commands/inbox"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// takeOrder takes an order, and rolls it back if keep is false.
func takeOrder(ctx context.Context, db *sql.DB, keep bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	id, err := inbox.Enqueue(ctx, tx, commands.Enqueue{Queue: "ship", Payload: []byte("x"),
		MaxAttempts: commands.MaxMaxAttempts})
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO shop_orders (job) VALUES ($1)`, string(id)); err != nil {
		return err
	}
	if !keep {
		return nil
	}
	return tx.Commit()
}

// shop is a program that is killed: "orders" takes orders, "worker" works. It never ends by its own will.
func shop(what, dsn string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	ctx := context.Background()
	store, err := ledger.Open(ctx, dsn)
	fail(err)
	if what == "worker" {
		fmt.Println("open") // the parent counts its delay from here
		for {
			w := &worker.Worker{Service: &commands.Service{Store: store}, Queues: []string{"ship"}, Slots: 2,
				Lease: time.Second, Handler: worker.HandlerFunc(func(context.Context, projection.Job) ([]byte, error) {
					return nil, nil
				})}
			_, _ = w.Run(ctx) // a server that is killed ends no worker for good
		}
	}
	db, err := connect(store)
	fail(err)
	for n := 0; ; n++ {
		err := takeOrder(ctx, db, n == 0 || rand.IntN(4) > 0) // #nosec G404 -- a test
		if n == 0 {
			fmt.Println("open")
		}
		if err != nil {
			time.Sleep(time.Millisecond) // the server was killed
		}
	}
}

// TestKilledInbox kills the program that takes orders, the worker that moves their rows, and the server, at
// random moments. Whenever that is, an order has a job if and only if it was committed, and one.
func TestKilledInbox(t *testing.T) {
	t.Parallel()
	kill := func(t *testing.T, dsn string, server *ledgertest.Server) {
		store := ledgertest.OpenAt(t, dsn)
		service := &commands.Service{Store: store}
		db := openDB(t, store)
		if _, err := db.Exec(`CREATE TABLE shop_orders (job text PRIMARY KEY)`); err != nil {
			t.Fatal(err)
		}
		for round := range ledgertest.Size(2, 10, 40) {
			var killed sync.WaitGroup
			for _, what := range []string{"orders", "worker"} {
				killed.Go(func() { killShop(t, what, dsn) })
			}
			killed.Wait()
			if server != nil && round%5 == 4 {
				server.Kill()
				server.Start()
			}
		}
		finish(t, service, db)
		commandstest.Verify(t, store)
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		kill(t, t.TempDir()+"/jobs.db", nil)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := ledgertest.PostgresServer(t)
		kill(t, server.URL(), server)
	})
}

// killShop runs a shop for up to 60 ms and kills it.
func killShop(t *testing.T, what, dsn string) {
	exe, err := os.Executable()
	if err != nil {
		t.Error(err)
		return
	}
	cmd := exec.Command(exe, "shop", what, dsn) // #nosec G204 -- this test's own program
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
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

// finish works off what there is to do, and compares orders with jobs.
func finish(t *testing.T, service *commands.Service, db *sql.DB) {
	t.Helper()
	ctx := context.Background()
	for end := time.Now().Add(time.Minute); ; {
		sweep(t, service)
		w := &worker.Worker{Service: service, Queues: []string{"ship"}, Slots: 8, Drain: true,
			Handler: worker.HandlerFunc(func(context.Context, projection.Job) ([]byte, error) { return nil, nil })}
		if _, err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		open := 0
		for _, j := range jobs(t, service) {
			if j.State != event.SucceededState {
				open++
			}
		}
		if open == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d jobs do not end", open)
		}
		time.Sleep(20 * time.Millisecond) // until the leases of killed shops have run out
	}
	orders := make(map[string]bool)
	rows, err := db.Query(`SELECT job FROM shop_orders`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var job string
		if err := rows.Scan(&job); err != nil {
			t.Fatal(err)
		}
		orders[job] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	list := jobs(t, service)
	for _, j := range list {
		if !orders[string(j.ID)] {
			t.Errorf("job %s has no order, or is there twice", j.ID)
		}
		delete(orders, string(j.ID))
	}
	waiting, refused := left(t, service)
	if len(orders)+waiting+refused != 0 || len(list) == 0 {
		t.Errorf("%d orders without a job, %d jobs, %d rows left, %d refused", len(orders), len(list), waiting,
			refused)
	}
	t.Logf("%d orders", len(list))
}
