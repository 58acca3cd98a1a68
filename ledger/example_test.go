package ledger_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"testing"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// tempLedger returns the path of a new ledger, and a function that removes it.
func tempLedger() (path string, remove func()) {
	folder, err := os.MkdirTemp("", "jobledger")
	if err != nil {
		log.Fatal(err)
	}
	return filepath.Join(folder, "jobs.db"), func() { _ = os.RemoveAll(folder) }
}

// Open creates a missing file. OpenExisting does not.
func ExampleOpen() {
	path, remove := tempLedger()
	defer remove()

	store, err := ledger.Open(context.Background(), path)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	err = store.Read(context.Background(), func(tx *ledger.Tx) error {
		last, err := tx.Tail(context.Background())
		fmt.Println("events:", last)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	// Output:
	// events: 0
}

// The same program runs on PostgreSQL: only the address differs. The ledger is the schema "jobledger" of that
// database. Open creates it if it is missing.
func ExampleOpen_postgres() {
	ctx := context.Background()
	store, err := ledger.Open(ctx, os.Getenv("DATABASE_URL")) // postgres://user@host/database
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	service := &commands.Service{Store: store}
	jobs, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail", Payload: []byte("Ada")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(jobs[0].State)
}

// Events reads history in the order of pos, from one snapshot.
func ExampleTx_Events() {
	ctx := context.Background()
	path, remove := tempLedger()
	defer remove()
	store, err := ledger.Open(ctx, path)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	service := &commands.Service{Store: store}
	if _, err := service.Pause(ctx, "cli:ada", "mail", "the mail server is down"); err != nil {
		log.Fatal(err)
	}
	if _, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail", Key: "welcome-17"}); err != nil {
		log.Fatal(err)
	}

	err = store.Read(ctx, func(tx *ledger.Tx) error {
		for e, err := range tx.Events(ctx, ledger.Filter{Queue: "mail"}) {
			if err != nil {
				return err
			}
			switch body := e.Body.(type) {
			case *event.QueuePaused:
				fmt.Printf("%d %s %s: %s\n", e.Pos, e.Actor, e.Kind(), body.Reason)
			case *event.Enqueued:
				fmt.Printf("%d %s %s: key %s\n", e.Pos, e.Actor, e.Kind(), body.Key)
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}

	// Output:
	// 1 cli:ada queue_paused: the mail server is down
	// 2 web enqueued: key welcome-17
}

// TestExampleOpenPostgres runs the example above, because an example cannot start a server.
func TestExampleOpenPostgres(t *testing.T) {
	t.Setenv("DATABASE_URL", ledgertest.Postgres(t))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	ExampleOpen_postgres()
	os.Stdout = stdout
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "queued\n" {
		t.Errorf("the example printed %q, %v", got, err)
	}
}
