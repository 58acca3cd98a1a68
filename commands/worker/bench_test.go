package worker_test

import (
	"context"
	"fmt"
	"testing"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// BenchmarkDrain runs no-op jobs of 100 bytes through a Worker; one op is one job.
func BenchmarkDrain(b *testing.B) {
	for _, slots := range []int{8, 64} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			service := &commands.Service{Store: ledgertest.Open(b)}
			for n := b.N; n > 0; n -= 10_000 {
				jobs := make([]commands.Enqueue, min(n, 10_000))
				for i := range jobs {
					jobs[i] = commands.Enqueue{Queue: "mail", Payload: make([]byte, 100)}
				}
				if _, err := service.Enqueue(b.Context(), "bench", jobs...); err != nil {
					b.Fatal(err)
				}
			}
			w := worker.Worker{Service: service, Process: ledger.Worker{Name: "w", Boot: "b"}, Queues: []string{"mail"}, Slots: slots, Drain: true,
				Handler: worker.HandlerFunc(func(context.Context, projection.Job) ([]byte, error) { return nil, nil })}
			b.ResetTimer()
			stats, err := w.Run(b.Context())
			b.StopTimer()
			if err != nil || stats.Succeeded != b.N {
				b.Fatalf("run: %+v, %v", stats, err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			verify(b, service.Store)
		})
	}
}
