package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/meter"
	"jobledger/commands"
	"jobledger/commands/remote"
	"jobledger/commands/remote/wire"
	"jobledger/commands/worker"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// BenchmarkOverHTTP compares work over the loopback interface with the same work on the file, in turns: to
// enqueue from 64 goroutines, and to drain with 4 workers of 16 slots. It reports the share of the file's
// rate that HTTP has, and the processor time of both sides as a multiple of the file's. Each of the 64 has a
// connection to the server, and each request one job. On the file they share one Store, as in one process,
// or each opens the file for itself, as 64 processes do: enqueue-opened-share. The clients are those of
// package remote, and for enqueue-bare-share 64 that only write and read bytes, as load generators do.
//
//	go test -run - -bench OverHTTP -benchtime 3x ./cmd/jobledger/internal/web
func BenchmarkOverHTTP(b *testing.B) {
	defer cli.TuneGC()() // as the program does
	const producers, each, workers, slots = 64, 200, 4, 16
	// On the file; over HTTP, each a client; over HTTP, as many as workers; on the file, each opens it; over
	// HTTP, each a bare client.
	var enqueue, drain [5]time.Duration
	var busy [2][5]time.Duration // of the processors, likewise
	for range b.N {
		for i := range enqueue {
			s := serveWith(b, "127.0.0.1:0", func(c *Config) { c.Rate = 1e6 })
			var clients []*remote.Client
			token := strings.TrimPrefix(s.create("w", []string{"*"}, access.Enqueue, access.Work), "Bearer ")
			for range []int{workers, producers, workers, 0, 0}[i] {
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
			var bare [producers]*bareClient
			if i == 4 {
				for p := range bare {
					bare[p] = newBareClient(b, s.base, token)
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
						case 4:
							err = bare[p].enqueue(e)
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
			if i > 2 {
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
	b.ReportMetric(float64(enqueue[0])/float64(enqueue[4]), "enqueue-bare-share")
	b.ReportMetric(float64(drain[0])/float64(drain[1]), "drain-share")
	b.ReportMetric(float64(busy[0][1])/float64(busy[0][0]+1), "enqueue-cpu-ratio")
	b.ReportMetric(float64(busy[0][2])/float64(busy[0][0]+1), "enqueue-shared-cpu-ratio")
	b.ReportMetric(float64(busy[0][4])/float64(busy[0][0]+1), "enqueue-bare-cpu-ratio")
	b.ReportMetric(float64(busy[1][1])/float64(busy[1][0]+1), "drain-cpu-ratio")
	b.ReportMetric(float64(producers*each*b.N)/enqueue[1].Seconds(), "enqueued/s")
	b.ReportMetric(float64(producers*each*b.N)/drain[1].Seconds(), "drained/s")
}

// processorTime returns the time of the processors that this process has used so far; 0: it is not known.
func processorTime() time.Duration {
	used, _ := meter.ProcessorTime()
	return used
}

// bareClient enqueues with as little work as HTTP/1.1 allows.
type bareClient struct {
	conn      net.Conn
	in        *bufio.Reader
	out, body []byte
	head      string // of each request, but for the length of its body
}

func newBareClient(b *testing.B, base, token string) *bareClient {
	address := strings.TrimPrefix(base, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	head := strings.Join([]string{"POST " + wire.Root + "/jobs HTTP/1.1", "Host: " + address,
		"Authorization: Bearer " + token, "Content-Type: application/x-ndjson",
		"Prefer: " + wire.PreferMinimal, "Content-Length: "}, "\r\n")
	return &bareClient{conn: conn, in: bufio.NewReader(conn), head: head}
}

func (c *bareClient) enqueue(e commands.Enqueue) error {
	c.body = fmt.Appendf(c.body[:0], "{\"id\":%q,\"queue\":%q,\"payload\":%q}\n", e.ID, e.Queue, e.Payload)
	c.out = fmt.Appendf(append(c.out[:0], c.head...), "%d\r\n\r\n%s", len(c.body), c.body)
	if _, err := c.conn.Write(c.out); err != nil {
		return err
	}
	length := 0
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.Contains(line, []byte(" 201 ")) {
			return fmt.Errorf("answered %q", line)
		}
		if len(line) == len("\r\n") {
			_, err = c.in.Discard(length)
			return err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
}
