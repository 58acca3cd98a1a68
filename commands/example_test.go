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
	limits "jobledger/projection/limit"
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
	bounds := limits.Spec{Running: 20, PerGroup: 2}
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
		end := commands.Succeed{Token: job.Token, Result: fmt.Appendf(nil, "Dear %s", job.Payload)}
		done, err := service.Apply(ctx, "worker:mailer", job.ID, end)
		fmt.Println(done.State, err)

		// If the answer is lost, the same command can be sent again: it gets the same answer.
		_, err = service.Apply(ctx, "worker:mailer", job.ID, end)
		fmt.Println("again:", err)

		_, err = service.Apply(ctx, "worker:mailer", job.ID, commands.Fail{Token: job.Token})
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
