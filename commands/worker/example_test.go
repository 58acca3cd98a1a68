package worker_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/projection"
)

// A Go program embeds the same runtime that the command line has.
func Example() {
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

	// The key makes it safe to enqueue twice: the second time gives the same job.
	for range 2 {
		jobs, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail", Payload: []byte("Ada"), Key: "welcome-17"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("was there already:", jobs[0].Existing)
	}

	w := &worker.Worker{
		Service: service,
		Process: ledger.Worker{Name: "mailer", Boot: ulid.Make().String()},
		Queues:  []string{"mail"},
		Drain:   true, // end when nothing is left; without it, Run works until Stop
		Handler: worker.HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
			return fmt.Appendf(nil, "Dear %s", job.Payload), nil
		}),
	}
	stats, err := w.Run(ctx)
	fmt.Printf("%+v %v\n", stats, err)

	// Output:
	// was there already: false
	// was there already: true
	// {Claimed:1 Succeeded:1 Failed:0 Released:0 Lost:0} <nil>
}
