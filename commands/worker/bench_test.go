package worker_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

var crowdFile = flag.String("crowd", "",
	"BenchmarkDrain/crowded: the ledger to start from; it is made if it is missing, which takes minutes")

var finished = flag.Int("finished", 0,
	"BenchmarkDrain/finished: how many jobs end before the measurement; the ledger is vacuumed after them")

// BenchmarkDrain runs no-op jobs of 100 bytes through a Worker; one op is one job. Give it jobs enough:
//
//	go test -run '^$' -bench Drain -benchtime 60000x ./commands/worker
//	go test -run '^$' -bench Drain/slots=64 -benchtime 60000x ./commands/worker -args -crowd /tmp/crowd.db
//	go test -run '^$' -bench 'Drain/slots=64/(empty|finished)' -benchtime 60000x ./commands/worker \
//		-args -finished 1000000 -engine postgres
func BenchmarkDrain(b *testing.B) {
	plain := func(i int) commands.Enqueue { return commands.Enqueue{Queue: "mail", Payload: make([]byte, 100)} }
	for _, slots := range []int{8, 64, 1000} {
		b.Run(fmt.Sprintf("slots=%d/empty", slots), func(b *testing.B) {
			benchmarkDrain(b, ledgertest.Open(b), slots, plain)
		})
	}
	b.Run("slots=64/lanes=100", func(b *testing.B) {
		benchmarkDrain(b, ledgertest.Open(b), 64, func(i int) commands.Enqueue {
			job := plain(i)
			job.Priority = i%100 - 50
			return job
		})
	})
	if *finished > 0 {
		store := ledgertest.Open(b)
		service := &commands.Service{Store: store}
		fill(b, service, *finished, plain)
		drain(b, service, 64, *finished)
		ledgertest.CatchUp(b, store.DSN())
		b.Run("slots=64/finished", func(b *testing.B) { benchmarkDrain(b, store, 64, plain) })
	}
	b.Run("slots=64/crowded", func(b *testing.B) {
		if *crowdFile == "" {
			b.Skip("-crowd says where the crowded ledger is")
		}
		benchmarkDrain(b, crowded(b, plain), 64, plain)
	})
}

func benchmarkDrain(b *testing.B, store *ledger.Store, slots int, job func(i int) commands.Enqueue) {
	service := &commands.Service{Store: store}
	fill(b, service, b.N, job)
	b.ResetTimer()
	drain(b, service, slots, b.N)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	if *crowdFile == "" && *finished == 0 { // of millions of events it would take longer than all else
		verify(b, store)
	}
}

func fill(b *testing.B, service *commands.Service, n int, job func(i int) commands.Enqueue) {
	b.Helper()
	for i := 0; i < n; {
		jobs := make([]commands.Enqueue, 0, 1000)
		for ; i < n && len(jobs) < cap(jobs); i++ {
			jobs = append(jobs, job(i))
		}
		if _, err := service.Enqueue(b.Context(), "bench", jobs...); err != nil {
			b.Fatal(err)
		}
	}
}

func drain(b *testing.B, service *commands.Service, slots, jobs int) {
	b.Helper()
	w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) { return nil, nil })
	w.Slots = slots
	if stats, err := w.Run(b.Context()); err != nil || stats.Succeeded != jobs {
		b.Fatalf("run: %+v, %v", stats, err)
	}
}

// crowded is a ledger with jobs that should not slow down a claim: a million that have ended, and ahead of
// all others 200,000 that require a missing capability and 200,000 for later.
func crowded(b *testing.B, plain func(i int) commands.Enqueue) *ledger.Store {
	b.Helper()
	const finished, ahead = 1_000_000, 200_000
	if _, err := os.Stat(*crowdFile); errors.Is(err, fs.ErrNotExist) {
		store := ledgertest.Open(b)
		service := &commands.Service{Store: store}
		fill(b, service, finished, plain)
		drain(b, service, 64, finished)
		fill(b, service, 2*ahead, func(i int) commands.Enqueue {
			job := plain(i)
			job.Priority = 10
			if i%2 == 0 {
				job.Requires = []string{"gpu"}
			} else {
				job.RunAt = time.Now().Add(1000 * time.Hour)
			}
			return job
		})
		if _, err := store.Vacuum(b.Context(), *crowdFile); err != nil {
			b.Fatal(err)
		}
	}
	path := filepath.Join(b.TempDir(), "jobs.db")
	if out, err := exec.CommandContext(b.Context(), "cp", *crowdFile, path).CombinedOutput(); err != nil {
		b.Fatalf("cp: %v: %s", err, out)
	}
	return ledgertest.OpenAt(b, path)
}
