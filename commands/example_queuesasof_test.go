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
	"jobledger/projection/query"
)

// nightOfQueuesAsOf is when the night begins.
var nightOfQueuesAsOf = time.Date(2026, 1, 2, 0, 40, 0, 0, time.UTC)

// Which queues were paused at 00:41, by whom and why?
func ExampleService_QueuesAsOf() {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	ctx, now := context.Background(), nightOfQueuesAsOf
	folder, err := os.MkdirTemp("", "jobledger")
	check(err)
	defer os.RemoveAll(folder)
	store, err := ledger.Open(ctx, filepath.Join(folder, "jobs.db"))
	check(err)
	defer store.Close()
	store.Now = func() time.Time { return now }
	service := &commands.Service{Store: store}

	_, err = service.Enqueue(ctx, "web", commands.Enqueue{Queue: "mail", Payload: []byte("hello")})
	check(err)
	now = now.Add(30 * time.Second) // 00:40:30
	_, err = service.Pause(ctx, "ann", "mail", "the mail server is down")
	check(err)
	now = now.Add(time.Minute) // 00:41:30
	_, err = service.Resume(ctx, "ann", "mail", "")
	check(err)

	then, err := service.QueuesAsOf(ctx, query.At(nightOfQueuesAsOf.Add(time.Minute)))
	check(err)
	for _, q := range then {
		fmt.Println(q.Name, q.Paused, q.Actor, q.Reason)
	}
	// Output:
	// mail true ann the mail server is down
}
