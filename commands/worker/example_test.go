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
	"jobledger/ledger/event"
	"jobledger/projection"
)

// openExample returns a Service on a new ledger, and a function that removes it.
func openExample() (*commands.Service, func()) {
	folder, err := os.MkdirTemp("", "jobledger")
	if err != nil {
		log.Fatal(err)
	}
	store, err := ledger.Open(context.Background(), filepath.Join(folder, "jobs.db"))
	if err != nil {
		log.Fatal(err)
	}
	return &commands.Service{Store: store}, func() {
		_ = store.Close()
		_ = os.RemoveAll(folder)
	}
}

// A Go program embeds the same runtime as the command line.
func Example() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()

	// The key makes it safe to enqueue twice: the second call returns the same job.
	for range 2 {
		job := commands.Enqueue{Queue: "mail", Payload: []byte("Ada"), Key: "welcome-17"}
		jobs, err := service.Enqueue(ctx, "web", job)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("existing:", jobs[0].Existing)
	}

	w := &worker.Worker{
		Service: service,
		Process: event.Worker{Name: "mailer"}, // host, process id and boot are filled in
		Queues:  []string{"mail"},
		Drain:   true, // end when no job is ready; without it, Run works until Stop
		Handler: worker.HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
			return fmt.Appendf(nil, "Dear %s", job.Payload), nil
		}),
	}
	stats, err := w.Run(ctx)
	fmt.Printf("%+v %v\n", stats, err)

	// Output:
	// existing: false
	// existing: true
	// {Claimed:1 Succeeded:1 Failed:0 Released:0 Lost:0 Cancelled:0 Stuck:0} <nil>
}

// A failed attempt is retried after a backoff, about a second after the first, until MaxAttempts is reached.
// Permanent ends a job that a retry cannot help.
func ExampleWorker_Run_retries() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()
	for _, payload := range []string{"flaky", "malformed"} {
		job := commands.Enqueue{Queue: "mail", Payload: []byte(payload), MaxAttempts: 3}
		if _, err := service.Enqueue(ctx, "web", job); err != nil {
			log.Fatal(err)
		}
	}

	w := &worker.Worker{
		Service: service,
		Process: event.Worker{Name: "mailer"}, // host, process id and boot are filled in
		Queues:  []string{"mail"},
		MaxJobs: 3, // two attempts at the first job and one at the second
		Handler: worker.HandlerFunc(func(ctx context.Context, job projection.Job) ([]byte, error) {
			switch {
			case string(job.Payload) == "malformed":
				return nil, worker.Permanent(errors.New("no address"))
			case job.Attempt == 1:
				return nil, errors.New("connection refused")
			}
			return []byte("sent"), nil
		}),
		Hooks: worker.Hooks{Ended: func(job projection.Job, how worker.Ending, took time.Duration) {
			fmt.Printf("%s: attempt %d %s, now %s\n", job.Payload, job.Attempt, how, job.State)
		}},
	}
	if _, err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}

	// Unordered output:
	// flaky: attempt 1 failed, now queued
	// malformed: attempt 1 failed, now failed
	// flaky: attempt 2 succeeded, now succeeded
}

// Order is the payload of the jobs of a queue, as JSON.
type Order struct {
	Number int
	To     string
}

// Typed handlers decode the payload and encode the result. An Error gives the failure a code, and RetryBy the
// handler a policy of its own.
func ExampleHandle() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()
	for _, payload := range []string{`{"Number":17,"To":"Ada"}`, `{"Number":18}`, `{"Number":19,"To":"Bob"}`} {
		_, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "ship", Payload: []byte(payload)})
		if err != nil {
			log.Fatal(err)
		}
	}

	var mux worker.Mux
	worker.Handle(&mux, "ship", func(ctx context.Context, job worker.Job[Order]) (any, error) {
		switch {
		case job.Args.To == "":
			return nil, &worker.Error{Code: "no_address", NoRetry: true}
		case job.Args.Number == 19:
			return nil, worker.Cancel("the customer has changed his mind")
		}
		if err := worker.Progress(ctx, 0.5, "packed"); err != nil {
			return nil, err // the job must stop
		}
		return map[string]string{"parcel": fmt.Sprint("P", job.Args.Number)}, nil
	}, worker.RetryBy(func(job projection.Job, err error) time.Duration {
		return time.Duration(job.Failures+1) * time.Minute
	}))
	w := &worker.Worker{Service: service, Handler: &mux, Drain: true, Hooks: worker.Hooks{
		Ended: func(job projection.Job, how worker.Ending, took time.Duration) {
			fmt.Printf("%s %s%s\n", how, job.ErrorCode, job.Result)
		},
	}}
	if _, err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}

	// Output:
	// succeeded {"parcel":"P17"}
	// failed no_address
	// cancelled
}
