package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/projection"
)

// hang is a handler that ignores its context.
func hang(context.Context, projection.Job) ([]byte, error) {
	time.Sleep(time.Hour)
	return nil, nil
}

// A worker that is stopped lets its jobs run for SoftStop, asks those that are left to stop, and waits
// StopTimeout for their handlers. The jobs of those that do not stop are named, and wait in their queue for
// the end of their leases.
func ExampleWorker_Run_stop() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background()) // or signal.NotifyContext(…, syscall.SIGTERM)
	defer cancel()
	folder, err := os.MkdirTemp("", "jobledger")
	check(err)
	defer os.RemoveAll(folder)
	store, err := ledger.Open(ctx, filepath.Join(folder, "jobs.db"))
	check(err)
	defer store.Close()
	service := &commands.Service{Store: store}
	_, err = service.Enqueue(ctx, "web", commands.Enqueue{Queue: "quick"}, commands.Enqueue{Queue: "endless"})
	check(err)

	var mux worker.Mux
	mux.HandleFunc("quick", func(context.Context, projection.Job) ([]byte, error) {
		cancel() // while it runs, the program is to end
		time.Sleep(10 * time.Millisecond)
		return []byte("done"), nil
	})
	mux.HandleFunc("endless", hang)
	w := &worker.Worker{Service: service, Handler: &mux, Slots: 2, SoftStop: 200 * time.Millisecond,
		StopTimeout: 100 * time.Millisecond}
	stats, err := w.Run(ctx)
	if stuck, ok := errors.AsType[*worker.StuckError](err); ok {
		fmt.Println("still runs:", stuck.Jobs[0].Queue)
	}
	fmt.Println(stats.Succeeded, "succeeded,", stats.Released, "released,", stats.Stuck, "stuck")
	// Output:
	// still runs: endless
	// 1 succeeded, 1 released, 1 stuck
}
