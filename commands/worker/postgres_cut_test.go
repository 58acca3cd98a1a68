package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// Connections break at every eighth COMMIT of workers, before it or after it, most of them in bursts. Each
// job runs once, and succeeds.
func TestPostgresWorkersWhoseCommitsAreCut(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Postgres(t)
	c, through := commandstest.NewCutter(t, dsn)
	service := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	t.Cleanup(func() { commandstest.Verify(t, service.Store) })
	jobs := make([]commands.Enqueue, ledgertest.Size(200, 400, 20_000))
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail", Payload: []byte("p")}
	}
	if _, err := service.Enqueue(t.Context(), "cli:test", jobs...); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	ran := make(map[event.JobID]int)
	all := make(chan struct{})
	var workers []*Worker
	var running sync.WaitGroup
	defer running.Wait()
	for i := range 2 {
		w := &Worker{Service: &commands.Service{Store: ledgertest.OpenAt(t, through)}, Queues: []string{"mail"},
			Slots: 4, Process: event.Worker{Name: fmt.Sprint("w", i), Boot: fmt.Sprint("b", i)},
			Handler: HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				if ran[job.ID]++; len(ran) == len(jobs) && ran[job.ID] == 1 {
					close(all)
				}
				return []byte("r"), nil
			})}
		workers = append(workers, w)
		running.Go(func() {
			if _, err := w.Run(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		defer w.Stop()
		c.Every.Store(8)
	}
	<-all
	c.Every.Store(0)
	for _, w := range workers {
		done, failed := w.Service.Store.Bursts()
		t.Logf("%d bursts, %d failed", done, failed)
	}
	t.Logf("%d of %d commits were cut", c.Cuts.Load(), c.Seen())
	if c.Cuts.Load() == 0 {
		t.Error("no commit was cut")
	}
	for id, n := range ran {
		if n != 1 {
			t.Errorf("job %s ran %d times", id, n)
		}
	}
}
