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

// nightOfAttempts is when the night begins.
var nightOfAttempts = time.Date(2026, 1, 2, 0, 40, 0, 0, time.UTC)

// Who worked on what in that night, and how did it end?
func ExampleService_Attempts() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	ctx, now := context.Background(), nightOfAttempts
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

	night := query.Window{From: query.At(nightOfAttempts), To: query.At(nightOfAttempts.Add(time.Hour))}
	now = now.Add(time.Hour)
	attempts, err := service.Attempts(ctx, night, query.Attempts{})
	check(err)
	for _, a := range attempts {
		fmt.Println(a.ClaimedAt.Format(time.TimeOnly), a.Worker.Name, a.Outcome, a.Code)
	}
	// Output:
	// 00:40:30 w1 failed smtp
	// 00:42:00 w2 succeeded
}
