package commands_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

// nightOfFailures is when the night begins.
var nightOfFailures = time.Date(2026, 1, 2, 0, 40, 0, 0, time.UTC)

// What failed in that night, and of how many jobs?
func ExampleService_Failures() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	ctx, now := context.Background(), nightOfFailures
	folder, err := os.MkdirTemp("", "jobledger")
	check(err)
	defer os.RemoveAll(folder)
	store, err := ledger.Open(ctx, filepath.Join(folder, "jobs.db"))
	check(err)
	defer store.Close()
	store.Now = func() time.Time { return now }
	service := &commands.Service{Store: store}

	claim := func(name string) projection.Job {
		claimed, err := service.Claim(ctx, commands.ClaimRequest{Queues: []string{"mail"},
			Worker: event.Worker{Name: name, Boot: name}})
		check(err)
		return claimed[0]
	}
	_, err = service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail", Payload: []byte("hello")})
	check(err)
	now = now.Add(30 * time.Second) // 00:40:30
	job, minute := claim("w1"), time.Minute
	now = now.Add(30 * time.Second) // 00:41:00
	_, err = service.Fail(ctx, job, commands.Fail{Code: "smtp", RetryIn: &minute})
	check(err)
	now = now.Add(time.Minute) // 00:42:00
	job = claim("w2")
	now = now.Add(5 * time.Second) // 00:42:05
	_, err = service.Complete(ctx, job, []byte("sent"))
	check(err)

	failures, err := service.Failures(ctx, query.Window{From: query.At(nightOfFailures)}, query.Failures{})
	check(err)
	for _, g := range failures.List {
		fmt.Println(g.Code, g.Attempts, "attempts of", len(g.Jobs), "job")
	}
	// Output:
	// smtp 1 attempts of 1 job
}
