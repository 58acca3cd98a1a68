package commands_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

var finishedJobs = flag.Int("finished", 200_000, "finished jobs in the ledger of BenchmarkClaim/finished")

func benchService(b *testing.B) *commands.Service {
	b.Helper()
	return &commands.Service{Store: ledgertest.Open(b)}
}

// fill enqueues n jobs in chunks.
func fill(b *testing.B, s *commands.Service, n int, e commands.Enqueue) {
	b.Helper()
	for n > 0 {
		chunk := make([]commands.Enqueue, min(n, 10_000))
		for i := range chunk {
			chunk[i] = e
		}
		if _, err := s.Enqueue(b.Context(), "cli:bench", chunk...); err != nil {
			b.Fatal(err)
		}
		n -= len(chunk)
	}
}

var benchRequest = commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "w", Boot: "b"},
	Lease: time.Hour}

// drain claims and finishes n jobs, a thousand per transaction.
func drain(b *testing.B, s *commands.Service, n int) {
	b.Helper()
	r := benchRequest
	var steps []commands.Op
	for n > 0 || len(steps) > 0 {
		r.Limit = min(max(n, 1), 1000)
		_, jobs, err := s.ApplyAndClaim(b.Context(), "worker:w", steps, r)
		if err != nil {
			b.Fatal(err)
		}
		steps = steps[:0]
		for _, j := range jobs {
			steps = append(steps, commands.Op{Job: j, Command: commands.Succeed{Token: j.Token}})
		}
		n -= len(jobs)
	}
}

func BenchmarkEnqueue(b *testing.B) {
	for _, size := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint("batch=", size), func(b *testing.B) {
			s := benchService(b)
			jobs := make([]commands.Enqueue, size)
			for i := range jobs {
				jobs[i] = commands.Enqueue{Queue: "mail",
					Payload: []byte("a payload of a common size, which is not very long")}
			}
			for n := 0; b.Loop(); n += size {
				if _, err := s.Enqueue(b.Context(), "cli:bench", jobs...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/job")
		})
	}
	b.Run("batch=10000, with keys", func(b *testing.B) {
		s := benchService(b)
		jobs := make([]commands.Enqueue, 10_000)
		for n := 0; b.Loop(); {
			for i := range jobs {
				n++
				jobs[i] = commands.Enqueue{Queue: "mail", Key: fmt.Sprint("key ", n)}
			}
			if _, err := s.Enqueue(b.Context(), "cli:bench", jobs...); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(jobs)), "ns/job")
	})
}

// BenchmarkClaimSucceed measures a worker that finishes one job and claims the next in one transaction.
func BenchmarkClaimSucceed(b *testing.B) {
	b.Run("one worker", func(b *testing.B) {
		s := benchService(b)
		fill(b, s, 200_000, commands.Enqueue{Queue: "mail"})
		var steps []commands.Op
		for b.Loop() {
			_, jobs, err := s.ApplyAndClaim(b.Context(), "worker:w", steps, benchRequest)
			if err != nil || len(jobs) != 1 {
				b.Fatal(len(jobs), err)
			}
			steps = append(steps[:0], commands.Op{Job: jobs[0], Command: commands.Succeed{Token: jobs[0].Token}})
		}
	})
	b.Run("64 workers", func(b *testing.B) {
		s := benchService(b)
		fill(b, s, 400_000, commands.Enqueue{Queue: "mail"})
		b.SetParallelism(32) // × GOMAXPROCS
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			var steps []commands.Op
			for pb.Next() {
				_, jobs, err := s.ApplyAndClaim(b.Context(), "worker:w", steps, benchRequest)
				if err != nil || len(jobs) != 1 {
					b.Error(len(jobs), err)
					return
				}
				steps = append(steps[:0], commands.Op{Job: jobs[0], Command: commands.Succeed{Token: jobs[0].Token}})
			}
		})
	})
}

// BenchmarkClaim shows that the cost of a claim does not depend on the size of the ledger. Each claimed job
// is released in the next transaction, so the queue stays the same.
func BenchmarkClaim(b *testing.B) {
	for _, bench := range []struct {
		name string
		fill func(b *testing.B, s *commands.Service)
	}{
		{"empty", func(*testing.B, *commands.Service) {}},
		{"200000 unfit ahead", func(b *testing.B, s *commands.Service) {
			fill(b, s, 200_000, commands.Enqueue{Queue: "mail", Priority: 100, Requires: []string{"gpu"}})
		}},
		{"200000 scheduled", func(b *testing.B, s *commands.Service) {
			fill(b, s, 200_000, commands.Enqueue{Queue: "mail", RunAt: time.Now().Add(24 * time.Hour)})
		}},
		{"finished", func(b *testing.B, s *commands.Service) {
			for left := *finishedJobs; left > 0; left -= 100_000 {
				n := min(left, 100_000)
				fill(b, s, n, commands.Enqueue{Queue: "mail"})
				drain(b, s, n)
			}
		}},
		{"100 lanes of one job", func(b *testing.B, s *commands.Service) {
			for i := range 100 {
				fill(b, s, 1, commands.Enqueue{Queue: "mail", Version: fmt.Sprint("v", i)})
			}
		}},
		{"100 lanes that fit", func(b *testing.B, s *commands.Service) {
			for i := range 100 {
				fill(b, s, 10, commands.Enqueue{Queue: "mail", Requires: []string{fmt.Sprint("c", i)}})
			}
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := benchService(b)
			bench.fill(b, s)
			fill(b, s, 10, commands.Enqueue{Queue: "mail"})
			r := benchRequest
			for i := range 100 {
				r.Capabilities = append(r.Capabilities, fmt.Sprint("c", i))
			}
			var steps []commands.Op
			for b.Loop() {
				_, jobs, err := s.ApplyAndClaim(b.Context(), "worker:w", steps, r)
				if err != nil || len(jobs) != 1 {
					b.Fatal(len(jobs), err)
				}
				steps = append(steps[:0], commands.Op{Job: jobs[0], Command: commands.Release{Token: jobs[0].Token}})
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	s := benchService(b)
	fill(b, s, 20_000, commands.Enqueue{Queue: "mail", Payload: []byte("a payload")})
	drain(b, s, 10_000)
	events := int64(0)
	for b.Loop() {
		err := s.Store.Read(b.Context(), func(tx *ledger.Tx) error {
			v, err := audit.Verify(b.Context(), tx, nil)
			if len(v.Findings) > 0 {
				b.Errorf("%+v", v.Findings)
			}
			events = v.Events
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(int64(b.N)*events), "ns/event")
}
