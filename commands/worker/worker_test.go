package worker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
)

func verify(t testing.TB, store *ledger.Store) {
	t.Helper()
	err := store.Read(context.Background(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(context.Background(), tx, nil)
		for _, f := range v.Findings {
			t.Errorf("verify: %+v", f)
		}
		return err
	})
	if err != nil {
		t.Errorf("verify: %v", err)
	}
}

func TestAWorkerDrainsAQueueRunningEachJobOnce(t *testing.T) {
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
	w := worker.Worker{Service: service, Process: ledger.Worker{Name: "w1", Boot: "b1"}, Queues: []string{"mail"}, Slots: 16, Drain: true,
		Handler: worker.HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			ran[string(job.Payload)]++
			return job.Payload, nil
		})}
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
	verify(t, service.Store)
}

// One claim has an end, a worker's slots need not have: it claims as often as it takes to fill them.
func TestMoreSlotsThanOneClaimTakes(t *testing.T) {
	service := &commands.Service{Store: ledgertest.Open(t)}
	const n = commands.MaxClaim + 500
	if _, err := service.Enqueue(t.Context(), "cli:test", slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, n)...); err != nil {
		t.Fatal(err)
	}
	var atWork sync.WaitGroup
	atWork.Add(n)
	w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
		atWork.Done()
		atWork.Wait() // until all are
		return nil, nil
	})
	w.Slots = n
	if stats, err := w.Run(t.Context()); err != nil || stats.Succeeded != n {
		t.Errorf("run: %+v, %v", stats, err)
	}
	verify(t, service.Store)
}
