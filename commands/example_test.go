package commands_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
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

// A key makes it safe to send the same job twice. Sending a different job with the same key is a conflict.
func ExampleService_Enqueue_key() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()

	for _, payload := range []string{"Ada", "Ada", "Grace"} {
		job := commands.Enqueue{Queue: "mail", Key: "welcome-17", Payload: []byte(payload)}
		jobs, err := service.Enqueue(ctx, "web", job)
		if errors.Is(err, commands.ErrConflict) {
			fmt.Println(payload, "conflict")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(payload, "existing:", jobs[0].Existing)
	}

	// Output:
	// Ada existing: false
	// Ada existing: true
	// Grace conflict
}

// A key may be a job's own for a while only: here one job at most waits to build the index, and it does so
// with the latest payload.
func ExampleService_Enqueue_unique() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()

	for _, revision := range []string{"r1", "r2", "r3"} {
		jobs, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "index", Payload: []byte(revision),
			Key: "docs", UniqueWhile: commands.WhileQueued, OnDuplicate: commands.ReplaceDuplicate})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("existing:", jobs[0].Existing, "replaced:", jobs[0].Replaced)
	}
	waiting, err := service.List(ctx, projection.Filter{Queues: []string{"index"}})
	if err != nil {
		log.Fatal(err)
	}
	job, err := service.Get(ctx, waiting[0].ID)
	fmt.Printf("%d job: %s %v\n", len(waiting), job.Payload, err)

	// Output:
	// existing: false replaced: false
	// existing: true replaced: true
	// existing: true replaced: true
	// 1 job: r3 <nil>
}

// A queue has defaults for the jobs that set nothing themselves.
func ExampleService_SetDefaults() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()
	_, err := service.SetDefaults(ctx, "ada", "mail", commands.Defaults{MaxAttempts: 20, MaxRuntime: time.Minute,
		Backoff: event.Backoff{Min: time.Second, Max: time.Hour, Factor: 3}}, "the relay is often away")
	if err != nil {
		log.Fatal(err)
	}
	jobs, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail"},
		commands.Enqueue{Queue: "mail", MaxAttempts: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(jobs[0].MaxAttempts, jobs[0].MaxRuntime, jobs[1].MaxAttempts, jobs[1].MaxRuntime)

	// Output: 20 1m0s 1 1m0s
}

// An operator's calls name who acts, and the history says it.
func ExampleService_Cancel() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()
	jobs, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := service.Cancel(ctx, "ada", jobs[0].ID, "sent by hand"); err != nil {
		log.Fatal(err)
	}
	if _, err := service.Retry(ctx, "bob", jobs[0].ID, commands.Retry{Reason: "no, it was not"}); err != nil {
		log.Fatal(err)
	}
	history, err := service.History(ctx, jobs[0].ID)
	for _, e := range history {
		fmt.Println(e.Kind(), "by", e.Actor)
	}
	fmt.Println(err)

	// Output:
	// enqueued by web
	// cancelled by ada
	// retried by bob
	// <nil>
}

// A queue runs at most so many jobs at once, and at most so many of each group; the groups are served in
// rotation.
func ExampleService_Limit() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()

	var jobs []commands.Enqueue
	for _, name := range []string{"acme", "acme", "acme", "bond"} {
		jobs = append(jobs, commands.Enqueue{Queue: "render", Group: name})
	}
	if _, err := service.Enqueue(ctx, "web", jobs...); err != nil {
		log.Fatal(err)
	}
	bounds := commands.Limits{Running: 20, PerGroup: 2, Rate: commands.Rate{N: 100, Per: time.Second, Burst: 3}}
	if _, err := service.Limit(ctx, "ada", "render", bounds, "a fair share"); err != nil {
		log.Fatal(err)
	}
	claimed, err := service.Claim(ctx, commands.ClaimRequest{Queues: []string{"render"}, Limit: 10,
		Worker: event.Worker{Name: "w1", Boot: ulid.Make().String()}})
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range claimed {
		fmt.Println(job.Group)
	}

	// Output:
	// acme
	// bond
	// acme
}

// A program with its own loop claims a job and ends it explicitly. Each claim has a fresh token, which every
// later write must present.
func ExampleService_Claim() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()
	if _, err := service.Enqueue(ctx, "web",
		commands.Enqueue{Queue: "mail", Payload: []byte("Ada")}); err != nil {
		log.Fatal(err)
	}

	me := event.Worker{Name: "mailer", Boot: ulid.Make().String()}
	request := commands.ClaimRequest{Queues: []string{"mail"}, Worker: me, Lease: time.Minute}
	jobs, err := service.Claim(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range jobs {
		if _, err := service.Heartbeat(ctx, job, commands.Heartbeat{Note: "half way"}); err != nil {
			log.Fatal(err) // commands.ErrLeaseLost or ErrCancelled: stop working
		}
		result := fmt.Appendf(nil, "Dear %s", job.Payload)
		done, err := service.Complete(ctx, job, result)
		fmt.Println(done.State, err)

		// If the answer is lost, the same call can be made again: it gets the same answer.
		_, err = service.Complete(ctx, job, result)
		fmt.Println("again:", err)

		_, err = service.Fail(ctx, job, commands.Fail{Code: "smtp"})
		fmt.Println("then fail:", errors.Is(err, commands.ErrConflict))
	}

	// Output:
	// succeeded <nil>
	// again: <nil>
	// then fail: true
}

// ApplyBatch applies commands to many jobs in one transaction. Each has its own result.
func ExampleService_ApplyBatch() {
	ctx := context.Background()
	service, remove := openExample()
	defer remove()
	jobs, err := service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail"}, commands.Enqueue{Queue: "mail"})
	if err != nil {
		log.Fatal(err)
	}

	low := -10
	results, err := service.ApplyBatch(ctx, "cli:ada", []commands.Op{
		{Job: jobs[0].Job, Command: commands.Cancel{Reason: "sent by hand"}},
		{Job: jobs[1].Job, Command: commands.Reschedule{Priority: &low}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.Job.State, r.Job.Priority, r.Err)
	}

	// Output:
	// cancelled 0 <nil>
	// queued -10 <nil>
}
