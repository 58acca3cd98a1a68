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

// nightOfWaits is when the night begins.
var nightOfWaits = time.Date(2026, 1, 2, 0, 40, 0, 0, time.UTC)

// How long had jobs been ready when they were claimed?
func ExampleService_Waits() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	ctx, now := context.Background(), nightOfWaits
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

	waits, err := service.Waits(ctx, query.Window{From: query.At(nightOfWaits)}, query.Waits{})
	check(err)
	for _, w := range waits {
		fmt.Println(w.Queue, w.Claims, "claims, at most", w.Max)
	}
	// Output:
	// mail 2 claims, at most 30s
}
