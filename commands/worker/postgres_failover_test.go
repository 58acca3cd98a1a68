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

// The server crashes while workers are busy, and a standby that has all of it takes over. What was
// acknowledged is there, each job runs once, and the workers go on.
func TestPostgresFailover(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	server := ledgertest.PostgresServer(t)
	standby := server.Standby()
	c, through := commandstest.NewCutter(t, server.URL())
	service := &commands.Service{Store: ledgertest.OpenAt(t, through)}
	t.Cleanup(func() { commandstest.Verify(t, service.Store) })
	jobs := make([]commands.Enqueue, ledgertest.Size(400, 1000, 5000))
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail", Payload: []byte("p")}
	}
	if _, err := service.Enqueue(t.Context(), "cli:test", jobs...); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ran, acknowledged := make(map[event.JobID]int), make(map[event.JobID]bool)
	half, all := make(chan struct{}), make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	for i := range 2 {
		w := &Worker{Service: &commands.Service{Store: ledgertest.OpenAt(t, through)}, Queues: []string{"mail"},
			Slots: 4, Process: event.Worker{Name: fmt.Sprint("w", i), Boot: fmt.Sprint("b", i)},
			Handler: HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				ran[job.ID]++
				return []byte("r"), nil
			}),
			Hooks: Hooks{Ended: func(job projection.Job, how Ending, _ time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				if how != Succeeded {
					t.Errorf("job %s: %v", job.ID, how)
				}
				acknowledged[job.ID] = true
				switch len(acknowledged) {
				case len(jobs) / 2:
					close(half)
				case len(jobs):
					close(all)
				}
			}}}
		running.Go(func() {
			if _, err := w.Run(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		defer w.Stop()
	}
	<-half
	server.Kill()
	standby.Promote()
	c.Redirect(t, standby.URL())
	<-all
	mu.Lock()
	defer mu.Unlock()
	for id, n := range ran {
		if n != 1 {
			t.Errorf("job %s ran %d times", id, n)
		}
		if j, err := service.Get(t.Context(), id); err != nil || j.State != event.SucceededState {
			t.Errorf("job %s was acknowledged, and is %s: %v", id, j.State, err)
		}
	}
}
