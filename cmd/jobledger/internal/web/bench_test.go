package web

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/commands"
	"jobledger/commands/remote"
	"jobledger/commands/worker"
	"jobledger/projection"
)

// BenchmarkOverHTTP compares work over the loopback interface with the same work on the file, in turns: to
// enqueue from 64 goroutines, and to drain with 4 workers of 16 slots. It reports the share of the file's
// rate that HTTP has, and the processor time of both sides as a multiple of the file's. Each of the 64 has a
// connection, and each request one job.
//
//	go test -run - -bench OverHTTP -benchtime 3x ./cmd/jobledger/internal/web
func BenchmarkOverHTTP(b *testing.B) {
	const producers, each, workers, slots = 64, 30, 4, 16
	var enqueue, drain [3]time.Duration // on the file; over HTTP, each a client; over HTTP, as many as workers
	var busy [2][3]time.Duration        // of the processors, likewise
	for range b.N {
		for i := range 3 {
			s := serve(b, "127.0.0.1:0")
			var clients []*remote.Client
			token := strings.TrimPrefix(s.create("w", []string{"*"}, access.Enqueue, access.Work), "Bearer ")
			for range []int{workers, producers, workers}[i] {
				c, err := remote.New(remote.Config{URL: s.base, Token: token})
				if err != nil {
					b.Fatal(err)
				}
				clients = append(clients, c)
			}
			local := s.service()
			began, used := time.Now(), processorTime()
			var all sync.WaitGroup
			for p := range producers {
				all.Go(func() {
					for n := range each {
						e := commands.Enqueue{Queue: "q", Payload: fmt.Append(nil, p, n)}
						var err error
						if i == 0 {
							_, err = local.Enqueue(b.Context(), "cli:bench", e)
						} else {
							_, err = clients[p%len(clients)].Enqueue(b.Context(), "", e)
						}
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			enqueue[i] += time.Since(began)
			busy[0][i] += processorTime() - used
			began, used = time.Now(), processorTime()
			for n := range workers {
				w := &worker.Worker{Queues: []string{"q"}, Slots: slots, Drain: true, SweepEvery: -1,
					Handler: worker.HandlerFunc(func(context.Context, projection.Job) ([]byte, error) {
						return nil, nil
					})}
				if i == 0 {
					w.Service = local
				} else {
					w.Backend = clients[n]
				}
				all.Go(func() {
					if _, err := w.Run(b.Context()); err != nil {
						b.Error(err)
					}
				})
			}
			all.Wait()
			drain[i] += time.Since(began)
			busy[1][i] += processorTime() - used
		}
	}
	b.ReportMetric(float64(enqueue[0])/float64(enqueue[1]), "enqueue-share")
	b.ReportMetric(float64(enqueue[0])/float64(enqueue[2]), "enqueue-shared-share")
	b.ReportMetric(float64(drain[0])/float64(drain[1]), "drain-share")
	b.ReportMetric(float64(busy[0][1])/float64(busy[0][0]+1), "enqueue-cpu-ratio")
	b.ReportMetric(float64(busy[0][2])/float64(busy[0][0]+1), "enqueue-shared-cpu-ratio")
	b.ReportMetric(float64(busy[1][1])/float64(busy[1][0]+1), "drain-cpu-ratio")
	b.ReportMetric(float64(producers*each*b.N)/enqueue[1].Seconds(), "enqueued/s")
	b.ReportMetric(float64(producers*each*b.N)/drain[1].Seconds(), "drained/s")
}

// processorTime returns the time of the processors that this process has used so far; 0: it is not known.
func processorTime() time.Duration {
	used, _ := api.ProcessorTime()
	return used
}
