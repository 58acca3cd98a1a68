package schedule_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/projection"
)

// A program says at its start which schedules it has. Saying the same again changes nothing. Workers enqueue
// the jobs when they are due; here a Ticker does, and a clock stands in for the passing of a night.
func ExampleSet() {
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
	now := time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)
	store.Now = func() time.Time { return now }
	service := &commands.Service{Store: store}

	for range 2 { // two starts of the program
		changes, err := schedule.Set(ctx, service, "web",
			schedule.Spec{Name: "digest", Queue: "mail", Cron: "30 7 * * *", Zone: "Europe/Berlin",
				Payload: `{"list":"customers"}`, MaxAttempts: 3},
			schedule.Spec{Name: "poll", Queue: "poll", Every: 5 * time.Minute})
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range changes {
			fmt.Println(c.Spec.Name, c.Done)
		}
	}

	now = now.Add(8 * time.Hour) // in the night the clocks went forward: 7:30 in Berlin is 5:30 UTC
	ticker := schedule.Ticker{Service: service, Actor: "sweeper:example"}
	if _, err := ticker.Tick(ctx); err != nil {
		log.Fatal(err)
	}
	jobs, err := service.List(ctx, projection.Filter{Queues: []string{"mail"}})
	for _, j := range jobs {
		fmt.Println(j.Schedule, j.Tick.Format(time.RFC3339), j.MaxAttempts)
	}
	fmt.Println(err)

	// Output:
	// digest added
	// poll added
	// digest unchanged
	// poll unchanged
	// digest 2026-03-29T05:30:00Z 3
	// <nil>
}
