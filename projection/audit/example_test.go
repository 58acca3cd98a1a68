package audit_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection/audit"
)

// Verify compares the tables with the fold of the events.
func ExampleVerify() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "jobledger")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store, err := ledger.Open(ctx, filepath.Join(folder, "jobs.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	service := &commands.Service{Store: store}
	if _, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail"}); err != nil {
		log.Fatal(err)
	}

	err = store.Read(ctx, func(tx *ledger.Tx) error {
		verified, err := audit.Verify(ctx, tx, nil)
		fmt.Println("jobs:", verified.Jobs, "findings:", len(verified.Findings))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	// Output:
	// jobs: 1 findings: 0
}
