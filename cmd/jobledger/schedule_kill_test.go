//go:build unix

package main

import (
	"fmt"
	"testing"
	"time"

	"jobledger/ledger/event"
)

// A sweep that is killed between reading what is due and its commit, or within it, leaves each tick undone or
// done, all those of a transaction alike. The next sweep enqueues each of the others once.
func TestKilledScheduleTicksOnce(t *testing.T) {
	t.Parallel()
	first := time.Now().UTC().Truncate(time.Second)
	const ticks = 150 // two transactions
	for step, want := range map[string]int{
		"planned": 0, "ticked": 0, "ticked:100": 0, // the first transaction
		"planned:2": 100, "ticked:101": 100, "ticked:150": 100, // the second
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.must(0, invoke("schedule", "set", "poll", "-q", "mail", "--every", "1h", "--from",
				first.Add(time.Hour).Format(time.RFC3339), "--catch-up", "all"))
			sweep := invoke("sweep").ahead(ticks*time.Hour + time.Minute)
			if got := r.do(sweep.dyingAt(step)); !got.killed {
				t.Fatalf("it was not killed: %+v", got)
			}
			if n := r.count(event.KindEnqueued); n != want {
				t.Errorf("%d jobs after the kill, want %d", n, want)
			}
			for range 2 {
				r.must(0, sweep)
			}
			n := 0
			for _, e := range r.history(db) {
				b, ok := e.Body.(*event.Enqueued)
				if !ok {
					continue
				}
				n++
				tick := first.Add(time.Duration(n) * time.Hour)
				if key := fmt.Sprintf("poll@%s", tick.Format(time.RFC3339)); !b.Tick.Equal(tick) || b.Key != key {
					t.Errorf("job %d is of the tick %s with the key %s, want %s", n, b.Tick, b.Key, key)
				}
			}
			if n != ticks {
				t.Errorf("%d jobs, want %d", n, ticks)
			}
		})
	}
}
