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
	"jobledger/ledger/tree"
	"jobledger/projection/audit"
	limits "jobledger/projection/limit"
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
// blockGroups makes groups that have a job each that runs, as many as their limit allows, and one that waits.
func blockGroups(b *testing.B, s *commands.Service, groups int) {
	b.Helper()
	for first := 0; first < groups; first += 5_000 {
		var chunk []commands.Enqueue
		for i := first; i < min(first+5_000, groups); i++ {
			e := commands.Enqueue{Queue: "mail", Group: fmt.Sprint("customer-", i), Priority: 100}
			chunk = append(chunk, e, e)
		}
		if _, err := s.Enqueue(b.Context(), "cli:bench", chunk...); err != nil {
			b.Fatal(err)
		}
	}
	r := benchRequest
	for left := groups; left > 0; {
		r.Limit = min(left, 1000)
		jobs, err := s.Claim(b.Context(), r) // in rotation: one of each group
		if err != nil || len(jobs) == 0 {
			b.Fatal(len(jobs), err)
		}
		left -= len(jobs)
	}
	if _, err := s.Limit(b.Context(), "cli:bench", "mail", limits.Spec{PerGroup: 1}, ""); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGroups claims and finishes jobs of so many groups, one at a time. Each claim is the turn of
// another group.
func BenchmarkGroups(b *testing.B) {
	for _, groups := range []int{0, 10, 1_000, 50_000} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			s := benchService(b)
			var chunk []commands.Enqueue
			for i := range 100_000 {
				e := commands.Enqueue{Queue: "mail"}
				if groups > 0 {
					e.Group = fmt.Sprint("customer-", i%groups)
				}
				if chunk = append(chunk, e); len(chunk) == 10_000 {
					if _, err := s.Enqueue(b.Context(), "cli:bench", chunk...); err != nil {
						b.Fatal(err)
					}
					chunk = chunk[:0]
				}
			}
			var steps []commands.Op
			before := processorTime()
			for b.Loop() {
				_, jobs, err := s.ApplyAndClaim(b.Context(), "worker:w", steps, benchRequest)
				if err != nil || len(jobs) != 1 {
					b.Fatal(len(jobs), err)
				}
				steps = append(steps[:0], commands.Op{Job: jobs[0], Command: commands.Release{Token: jobs[0].Token}})
			}
			reportProcessor(b, before)
		})
	}
}

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
		{"a limit for each group", func(b *testing.B, s *commands.Service) { blockGroups(b, s, 1) }},
		{"100000 blocked groups ahead", func(b *testing.B, s *commands.Service) { blockGroups(b, s, 100_000) }},
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
			before := processorTime()
			for b.Loop() {
				_, jobs, err := s.ApplyAndClaim(b.Context(), "worker:w", steps, r)
				if err != nil || len(jobs) != 1 {
					b.Fatal(len(jobs), err)
				}
				steps = append(steps[:0], commands.Op{Job: jobs[0], Command: commands.Release{Token: jobs[0].Token}})
			}
			reportProcessor(b, before)
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	b.Run("plain", func(b *testing.B) { benchmarkVerify(b, false) })
	b.Run("sealed", func(b *testing.B) { benchmarkVerify(b, true) })
}

func benchmarkVerify(b *testing.B, sealed bool) {
	s := benchService(b)
	fill(b, s, 20_000, commands.Enqueue{Queue: "mail", Payload: []byte("a payload")})
	drain(b, s, 10_000)
	if sealed {
		if _, err := tree.Extend(b.Context(), s.Store, 0, nil); err != nil {
			b.Fatal(err)
		}
	}
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

// BenchmarkSeal measures what it costs to add blocks; one op is one event.
//
//	go test -run '^$' -bench Seal -benchtime 300000x ./commands
func BenchmarkSeal(b *testing.B) {
	s := benchService(b)
	jobs := b.N/3 + 1
	fill(b, s, jobs, commands.Enqueue{Queue: "mail", Payload: []byte("a payload")})
	drain(b, s, jobs)
	b.ResetTimer()
	if _, err := tree.Extend(b.Context(), s.Store, 0, nil); err != nil {
		b.Fatal(err)
	}
}
