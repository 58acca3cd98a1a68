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
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
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
	b.Run("slots=64/sealing", func(b *testing.B) {
		store := ledgertest.Open(b)
		service := &commands.Service{Store: store}
		if _, err := service.StartSealing(b.Context(), "bench", "", "", ""); err != nil {
			b.Fatal(err)
		}
		benchmarkDrain(b, store, 64, plain) // its worker sweeps, and so seals, as every worker does
	})
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
		commandstest.Verify(b, store)
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

// BenchmarkCancel measures how long a cancel by another process takes to reach the work: from the call until
// the context of the work has ended, and until the end of the work is recorded.
//
//	go test -run '^$' -bench Cancel -benchtime 200x ./commands/worker
//	go test -run '^$' -bench Cancel -benchtime 200x ./commands/worker -args -engine postgres
//
// An operator that is fresh has opened the ledger for this one command, as the program does.
func BenchmarkCancel(b *testing.B) {
	for _, fresh := range []bool{false, true} {
		b.Run(fmt.Sprintf("fresh=%t", fresh), func(b *testing.B) { benchmarkCancel(b, fresh) })
	}
}

func benchmarkCancel(b *testing.B, fresh bool) {
	address := filepath.Join(b.TempDir(), "jobs.db")
	if ledgertest.OnPostgres(b) {
		address = ledgertest.Postgres(b)
	}
	service := &commands.Service{Store: ledgertest.OpenAt(b, address)}
	operator := &commands.Service{Store: ledgertest.OpenAt(b, address)}
	began, reached, ended := make(chan event.JobID), make(chan time.Time), make(chan time.Time)
	w := newWorker(service, func(ctx context.Context, j projection.Job) ([]byte, error) {
		began <- j.ID
		<-ctx.Done()
		reached <- time.Now()
		return nil, nil
	})
	w.MaxJobs, w.Drain = b.N, false
	w.Hooks.Ended = func(projection.Job, worker.Ending, time.Duration) { ended <- time.Now() }
	stopped := make(chan error)
	go func() {
		_, err := w.Run(b.Context())
		stopped <- err
	}()
	var reach, record []time.Duration
	b.ResetTimer()
	for range b.N {
		one(b, service, commands.Enqueue{Payload: []byte("x")})
		id := <-began
		if fresh {
			operator = &commands.Service{Store: ledgertest.OpenAt(b, address)}
		}
		asked := time.Now()
		if _, err := operator.Apply(b.Context(), "cli:ann", id, commands.Cancel{}); err != nil {
			b.Fatal(err)
		}
		reach = append(reach, (<-reached).Sub(asked))
		record = append(record, (<-ended).Sub(asked))
		if fresh {
			if err := operator.Store.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	if err := <-stopped; err != nil {
		b.Fatal(err)
	}
	for name, took := range map[string][]time.Duration{"reached": reach, "recorded": record} {
		slices.Sort(took)
		for _, percent := range []int{50, 99} {
			at := took[(len(took)-1)*percent/100]
			b.ReportMetric(float64(at.Microseconds())/1e3, fmt.Sprintf("ms-%s-p%d", name, percent))
		}
	}
	commandstest.Verify(b, service.Store)
}
