package web

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/commands"
	"jobledger/commands/remote"
	"jobledger/commands/worker"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// BenchmarkOverHTTP compares work over the loopback interface with the same work on the file, in turns: to
// enqueue from 64 goroutines, and to drain with 4 workers of 16 slots. It reports the share of the file's
// rate that HTTP has, and the processor time of both sides as a multiple of the file's. Each of the 64 has a
// connection to the server, and each request one job. On the file they share one Store, as in one process,
// or each opens the file for itself, as 64 processes do: enqueue-opened-share.
//
//	go test -run - -bench OverHTTP -benchtime 3x ./cmd/jobledger/internal/web
func BenchmarkOverHTTP(b *testing.B) {
	defer cli.TuneGC()() // as the program does
	const producers, each, workers, slots = 64, 200, 4, 16
	// On the file; over HTTP, each a client; over HTTP, as many as workers; on the file, each opens it.
	var enqueue, drain [4]time.Duration
	var busy [2][4]time.Duration // of the processors, likewise
	for range b.N {
		for i := range enqueue {
			s := serveWith(b, "127.0.0.1:0", func(c *Config) { c.Rate = 1e6 })
			var clients []*remote.Client
			token := strings.TrimPrefix(s.create("w", []string{"*"}, access.Enqueue, access.Work), "Bearer ")
			for range []int{workers, producers, workers, 0}[i] {
				c, err := remote.New(remote.Config{URL: s.base, Token: token})
				if err != nil {
					b.Fatal(err)
				}
				clients = append(clients, c)
			}
			local := s.service()
			opened := make([]*commands.Service, producers)
			if i == 3 {
				for p := range opened {
					opened[p] = &commands.Service{Store: ledgertest.OpenAt(b, s.Store.Path())}
				}
			}
			began, used := time.Now(), processorTime()
			var all sync.WaitGroup
			for p := range producers {
				all.Go(func() {
					for n := range each {
						e := commands.Enqueue{Queue: "q", Payload: fmt.Append(nil, p, n), ID: ulid.Make().String()}
						var err error
						switch i {
						case 0:
							_, err = local.Enqueue(b.Context(), "cli:bench", e)
						case 3:
							_, err = opened[p].Enqueue(b.Context(), "cli:bench", e)
						default:
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
			if i == 3 {
				continue
			}
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
	b.ReportMetric(float64(enqueue[3])/float64(enqueue[1]), "enqueue-opened-share")
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
