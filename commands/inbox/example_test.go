package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"jobledger/commands"
	"jobledger/commands/inbox"
	"jobledger/commands/worker"
	"jobledger/ledger"
)

// Order is the payload.
type Order struct{ Number int }

// placeOrder takes an order and asks for its job, in one transaction.
func placeOrder(ctx context.Context, db *sql.DB, number int, fails bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `INSERT INTO shop_orders VALUES ($1)`, number); err != nil {
		return err
	}
	payload := fmt.Appendf(nil, `{"Number":%d}`, number)
	_, err = inbox.Enqueue(ctx, tx, commands.Enqueue{Queue: "ship", Payload: payload})
	if err == nil && fails {
		err = errors.New("the card was refused")
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// A shop has its tables in the file of the ledger. An order and its job exist, or neither does, and nothing
// runs but the worker.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store, err := ledger.Open(ctx, filepath.Join(folder, "shop.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	db, err := inbox.Open(ctx, store) // with PostgreSQL, a pool of your own
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE shop_orders (number INTEGER)`); err != nil {
		log.Fatal(err)
	}

	fmt.Println("order 17:", placeOrder(ctx, db, 17, false))
	fmt.Println("order 18:", placeOrder(ctx, db, 18, true))

	var mux worker.Mux
	worker.Handle(&mux, "ship", func(_ context.Context, job worker.Job[Order]) (any, error) {
		fmt.Println("shipped:", job.Args.Number)
		return nil, nil
	})
	service := &commands.Service{Store: store}
	stats, err := (&worker.Worker{Service: service, Handler: &mux, Drain: true}).Run(ctx)
	fmt.Println("succeeded:", stats.Succeeded, err)

	refused, err := inbox.Refused(ctx, store) // what the ledger did not take, with the reason
	fmt.Println("refused:", len(refused), err)
	// Output:
	// order 17: <nil>
	// order 18: the card was refused
	// shipped: 17
	// succeeded: 1 <nil>
	// refused: 0 <nil>
}
