package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// load is two workers whose address leads to a server that fails, and the jobs that they work on.
type load struct {
	*testing.T
	service   *commands.Service
	workers   []*Worker
	half, all chan struct{} // closed when so many jobs have ended, as the workers know

	mu         sync.Mutex
	ran, ended map[event.JobID]int
}

// startLoad enqueues jobs in the ledger at dsn, and starts the workers. These end with the test, whose last
// step verifies the ledger.
func startLoad(t *testing.T, dsn string, jobs int) *load {
	t.Helper()
	l := &load{T: t, service: &commands.Service{Store: ledgertest.OpenAt(t, dsn)}, half: make(chan struct{}),
		all: make(chan struct{}), ran: make(map[event.JobID]int), ended: make(map[event.JobID]int)}
	batch := make([]commands.Enqueue, jobs)
	for i := range batch {
		batch[i] = commands.Enqueue{Queue: "mail", Payload: []byte("p")}
	}
	if _, err := l.service.Enqueue(t.Context(), "cli:test", batch...); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		l.workers = append(l.workers, &Worker{Service: &commands.Service{Store: ledgertest.OpenAt(t, dsn)},
			Queues: []string{"mail"}, Slots: 4,
			Process: event.Worker{Name: fmt.Sprint("w", i), Boot: fmt.Sprint("b", i)},
			Handler: HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.ran[job.ID]++
				return []byte("r"), nil
			}),
			Hooks: Hooks{Ended: func(job projection.Job, how Ending, _ time.Duration) {
				l.mu.Lock()
				defer l.mu.Unlock()
				if how != Succeeded {
					t.Errorf("job %s: %v", job.ID, how)
				}
				if l.ended[job.ID]++; l.ended[job.ID] > 1 {
					return
				}
				switch len(l.ended) {
				case jobs / 2:
					close(l.half)
				case jobs:
					close(l.all)
				}
			}}})
	}
	t.Cleanup(func() { commandstest.Verify(t, l.service.Store) })
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	for _, w := range l.workers {
		t.Cleanup(w.Stop)
		running.Go(func() {
			if _, err := w.Run(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	return l
}

// wantEachOnce requires that each job ran once, and has succeeded at its first claim, and that turns were
// bursts.
func (l *load) wantEachOnce() {
	l.Helper()
	var bursts int64
	for _, w := range l.workers {
		done, failed := w.Service.Store.Bursts()
		l.Logf("%d bursts, %d failed", done, failed)
		bursts += done
	}
	if bursts == 0 {
		l.Error("no turn was a burst")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, n := range l.ran {
		if n != 1 || l.ended[id] != 1 {
			l.Errorf("job %s ran %d times, and ended %d times", id, n, l.ended[id])
		}
		if j, err := l.service.Get(l.Context(), id); err != nil || j.State != event.SucceededState ||
			j.Attempt != 1 {
			l.Errorf("job %s was acknowledged, and is %s at attempt %d: %v", id, j.State, j.Attempt, err)
		}
	}
}
