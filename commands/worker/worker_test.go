package worker_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

func TestWorkerDrainRunsEachJobOnce(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	const n = 500
	jobs := make([]commands.Enqueue, n)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail", Payload: fmt.Appendf(nil, "%d", i)}
	}
	if _, err := service.Enqueue(t.Context(), "cli:test", jobs...); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ran := make(map[string]int)
	w := newWorker(service, func(_ context.Context, job projection.Job) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		ran[string(job.Payload)]++
		return job.Payload, nil
	})
	w.Slots = 16
	start := time.Now()
	stats, err := w.Run(t.Context())
	if err != nil || stats.Succeeded != n || stats.Claimed != n {
		t.Errorf("run: %+v, %v", stats, err)
	}
	t.Log(time.Since(start))
	for payload, times := range ran {
		if times != 1 {
			t.Errorf("job %s ran %d times", payload, times)
		}
	}
	commandstest.Verify(t, service.Store)
}

// A claim is limited to MaxClaim jobs. A worker with more slots claims until they are full.
func TestWorkerFillsMoreSlotsThanOneClaimTakes(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	const n = commands.MaxClaim + 500
	jobs := slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, n)
	if _, err := service.Enqueue(t.Context(), "cli:test", jobs...); err != nil {
		t.Fatal(err)
	}
	var atWork sync.WaitGroup
	atWork.Add(n)
	w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
		atWork.Done()
		atWork.Wait() // until all jobs are running
		return nil, nil
	})
	w.Slots = n
	if stats, err := w.Run(t.Context()); err != nil || stats.Succeeded != n {
		t.Errorf("run: %+v, %v", stats, err)
	}
	commandstest.Verify(t, service.Store)
}

// A Worker without a Process gets one that says where it runs.
func TestWorkerFillsInItsProcess(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	one(t, service, commands.Enqueue{})
	var got event.Worker
	w := newWorker(service, func(_ context.Context, job projection.Job) ([]byte, error) {
		got = job.Worker
		return nil, nil
	})
	w.Process, w.MaxJobs = event.Worker{Version: "v2"}, 1
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil || got.Host != host || got.PID != os.Getpid() || got.Version != "v2" ||
		got.Name != fmt.Sprintf("%s-%d", host, os.Getpid()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := ulid.ParseStrict(got.Boot); err != nil {
		t.Errorf("boot %q: %v", got.Boot, err)
	}
	commandstest.Verify(t, service.Store)
}
