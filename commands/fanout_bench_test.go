package commands_test

import (
	"flag"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/status"
)

var fanOut = flag.Int("children", 100_000, "jobs that wait for one in BenchmarkFanOut")

// BenchmarkFanOut ends a job that many others wait for, and resolves those that its end leaves to a sweeper.
// It reports the time of the end and that of the sweep, and the processor time of each. Run it with
// -benchtime 1x.
func BenchmarkFanOut(b *testing.B) {
	var end, sweep, endWork, sweepWork time.Duration
	for b.Loop() {
		s := benchService(b)
		parent, err := s.Enqueue(b.Context(), "cli:bench", commands.Enqueue{Queue: "mail"})
		if err != nil {
			b.Fatal(err)
		}
		fill(b, s, *fanOut, commands.Enqueue{Queue: "rest",
			After: []commands.Dependency{{Job: parent[0].ID}}})
		claimed, err := s.Claim(b.Context(), benchRequest)
		if err != nil || len(claimed) != 1 {
			b.Fatal(len(claimed), err)
		}
		began, work := time.Now(), processorTime()
		if _, err := s.Apply(b.Context(), "worker:w", parent[0].ID,
			commands.Succeed{Token: claimed[0].Token}); err != nil {
			b.Fatal(err)
		}
		end, endWork = end+time.Since(began), endWork+time.Duration(processorTime()-work)
		began, work = time.Now(), processorTime()
		sweeper := commands.Sweeper{Service: s, Actor: "sweeper:bench"}
		if _, err := sweeper.Sweep(b.Context()); err != nil {
			b.Fatal(err)
		}
		sweep, sweepWork = sweep+time.Since(began), sweepWork+time.Duration(processorTime()-work)
		err = s.Store.Read(b.Context(), func(tx *ledger.Tx) error {
			queues, err := status.Queues{At: projection.Now(time.Now())}.Read(b.Context(), tx)
			for _, q := range queues {
				if q.Name == "rest" && q.Jobs[event.Queued] != int64(*fanOut) {
					b.Errorf("%d are queued, want %d", q.Jobs[event.Queued], *fanOut)
				}
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for name, d := range map[string]time.Duration{"end": end, "end-cpu": endWork, "sweep": sweep,
		"sweep-cpu": sweepWork} {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), name+"-ms")
	}
}
