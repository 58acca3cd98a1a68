package projection_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
)

// cancelledJob returns a ledger with one job, which an operator has cancelled.
func cancelledJob(ctx context.Context) (store *ledger.Store, job projection.Job, remove func()) {
	folder, err := os.MkdirTemp("", "jobledger")
	if err != nil {
		log.Fatal(err)
	}
	if store, err = ledger.Open(ctx, filepath.Join(folder, "jobs.db")); err != nil {
		log.Fatal(err)
	}
	service := &commands.Service{Store: store}
	jobs, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail"})
	if err != nil {
		log.Fatal(err)
	}
	job, err = service.Apply(ctx, "cli:ada", jobs[0].ID, commands.Cancel{Reason: "sent by hand"})
	if err != nil {
		log.Fatal(err)
	}
	return store, job, func() {
		_ = store.Close()
		_ = os.RemoveAll(folder)
	}
}

// The history of a job is its events, folded by Evolve.
func ExampleEvolve() {
	ctx := context.Background()
	store, job, remove := cancelledJob(ctx)
	defer remove()

	err := store.Read(ctx, func(tx *ledger.Tx) error {
		var j projection.Job
		for e, err := range tx.Events(ctx, ledger.Filter{Job: job.N}) {
			if err != nil {
				return err
			}
			if j, err = projection.Evolve(j, e); err != nil {
				return err
			}
			fmt.Printf("%d %s by %s: %s\n", e.Seq, e.Kind(), e.Actor, j.State)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}

	// Output:
	// 1 enqueued by web: queued
	// 2 cancelled by cli:ada: cancelled
}

// JobAsOf returns a job as it was at any time in the past.
func ExampleJobAsOf() {
	ctx := context.Background()
	store, job, remove := cancelledJob(ctx)
	defer remove()

	err := store.Read(ctx, func(tx *ledger.Tx) error {
		for pos := int64(1); pos <= 2; pos++ {
			moment, err := projection.AtPos(ctx, tx, pos)
			if err != nil {
				return err
			}
			then, _, err := projection.JobAsOf(ctx, tx, job.N, moment)
			if err != nil {
				return err
			}
			fmt.Printf("as of event %d: %s\n", pos, then.State)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}

	// Output:
	// as of event 1: queued
	// as of event 2: cancelled
}
