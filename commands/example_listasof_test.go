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

// nightOfListAsOf is when the night begins.
var nightOfListAsOf = time.Date(2026, 1, 2, 0, 40, 0, 0, time.UTC)

// Which jobs of the queue were there at 00:41:30, and what became of them?
func ExampleService_ListAsOf() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	ctx, now := context.Background(), nightOfListAsOf
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

	then, err := service.ListAsOf(ctx, projection.Filter{Queues: []string{"mail"}},
		query.At(nightOfListAsOf.Add(90*time.Second)))
	check(err)
	for _, j := range then {
		fmt.Println(j.State, "then,", j.Now, "now")
	}
	// Output:
	// queued then, succeeded now
}
