package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"jobledger/commands"
	"jobledger/commands/outbox"
	"jobledger/commands/worker"
	"jobledger/ledger"
)

// Order is the payload.
type Order struct{ Number int }

// A shop takes orders in its own database. An order and its job exist, or neither does; the parcel is counted
// once.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	db, err := sql.Open("sqlite", filepath.Join(folder, "shop.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := ledger.Open(ctx, filepath.Join(folder, "jobs.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	service := &commands.Service{Store: store}
	if err := outbox.Migrate(ctx, db); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"orders", "parcels"} {
		if _, err := db.ExecContext(ctx, `CREATE TABLE `+name+` (number INTEGER)`); err != nil {
			log.Fatal(err)
		}
	}

	for number, fails := range map[int]bool{17: false, 18: true} {
		if err := placeOrder(ctx, db, number, fails); err != nil {
			fmt.Println("order 18:", err)
		}
	}

	// Relay.Run does this for good, next to the program's other work.
	moved, err := (&outbox.Relay{Service: service, From: db}).Drain(ctx)
	fmt.Println("moved:", moved.Jobs, err)

	var mux worker.Mux
	worker.Handle(&mux, "ship", func(ctx context.Context, job worker.Job[Order]) (any, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		defer tx.Rollback()
		first, err := worker.Once(ctx, tx, job.Job)
		if err != nil {
			return nil, err
		}
		if first {
			if _, err := tx.ExecContext(ctx, `INSERT INTO parcels VALUES ($1)`, job.Args.Number); err != nil {
				return nil, err
			}
		}
		return nil, tx.Commit()
	})
	stats, err := (&worker.Worker{Service: service, Handler: &mux, Drain: true}).Run(ctx)
	fmt.Println("succeeded:", stats.Succeeded, err)

	// Output:
	// order 18: the card was refused
	// moved: 1 <nil>
	// succeeded: 1 <nil>
}

// placeOrder writes an order and asks for its job in one transaction.
func placeOrder(ctx context.Context, db *sql.DB, number int, fails bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders VALUES ($1)`, number); err != nil {
		return err
	}
	payload := fmt.Appendf(nil, `{"Number":%d}`, number)
	if _, err := outbox.Enqueue(ctx, tx, commands.Enqueue{Queue: "ship", Payload: payload}); err != nil {
		return err
	}
	if fails {
		return fmt.Errorf("the card was refused")
	}
	return tx.Commit()
}
