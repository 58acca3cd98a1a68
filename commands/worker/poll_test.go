package worker_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// idleWorker is a worker that waits for jobs in a synctest bubble, and sends the time at which each job
// starts.
type idleWorker struct {
	*commands.Service
	*worker.Worker
	t     testing.TB
	began chan time.Time
}

func startIdle(t testing.TB) *idleWorker {
	t.Helper()
	w := &idleWorker{Service: &commands.Service{Store: ledgertest.Open(t)}, t: t,
		began: make(chan time.Time, 100)}
	w.Worker = newWorker(w.Service, func(context.Context, projection.Job) ([]byte, error) {
		w.began <- time.Now()
		return nil, nil
	})
	w.Drain, w.Poll = false, 100*time.Hour // so that only a notification wakes it
	var run sync.WaitGroup
	run.Go(func() {
		if _, err := w.Run(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		w.Stop()
		run.Wait()
	})
	time.Sleep(time.Hour)
	return w
}

// begins requires the next job to start at want, or up to 10 ms later.
func (w *idleWorker) begins(want time.Time) {
	w.t.Helper()
	select {
	case at := <-w.began:
		if late := at.Sub(want); late < 0 || late > 10*time.Millisecond {
			w.t.Errorf("began %v after it was due", late)
		}
	case <-time.After(24 * time.Hour):
		w.t.Error("did not begin")
	}
}

func TestIdleWorkerBeginsAtOnce(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := startIdle(t)
		for range 3 {
			one(t, w.Service, commands.Enqueue{})
			synctest.Wait() // it returns before any time passes
			if len(w.began) != 1 {
				t.Errorf("not at once")
			}
			w.begins(time.Now())
			time.Sleep(time.Hour)
		}
	})
}

func TestIdleWorkerBeginsWhenJobIsDue(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := startIdle(t)
		due := time.Now().Add(10 * time.Minute)
		one(t, w.Service, commands.Enqueue{RunAt: due.Add(time.Hour)})
		one(t, w.Service, commands.Enqueue{RunAt: due})
		later := one(t, w.Service, commands.Enqueue{RunAt: due.Add(2 * time.Hour)})
		w.begins(due)
		w.begins(due.Add(time.Hour))
		now := time.Now().Add(time.Minute)
		if _, err := w.Apply(t.Context(), "cli:test", later.ID, commands.Reschedule{RunAt: &now}); err != nil {
			t.Fatal(err)
		}
		w.begins(now)
	})
}

func TestIdleWorkerBeginsWhenQueueIsResumed(t *testing.T) {
	ledgertest.OfSQLite(t)
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := startIdle(t)
		if _, err := w.Pause(t.Context(), "cli:test", "mail", ""); err != nil {
			t.Fatal(err)
		}
		one(t, w.Service, commands.Enqueue{})
		time.Sleep(time.Hour)
		if len(w.began) > 0 {
			t.Error("a paused queue gave a job")
		}
		if _, err := w.Resume(t.Context(), "cli:test", "mail", ""); err != nil {
			t.Fatal(err)
		}
		w.begins(time.Now())
	})
}

// Each read of the ledger reads the clock once, and so does each Enqueue. The test counts the readings.
func TestWorkerDoesNotReadWithoutFreeSlotOrReason(t *testing.T) {
	ledgertest.OfSQLite(t)
	synctest.Test(t, func(t *testing.T) {
		store := ledgertest.Open(t)
		var readings atomic.Int64
		store.Now = func() time.Time {
			readings.Add(1)
			return time.Now()
		}
		service := &commands.Service{Store: store}
		release := make(chan struct{})
		w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
			<-release
			return nil, nil
		})
		w.Drain, w.SweepEvery, w.MaxJobs = false, -1, 51
		var run sync.WaitGroup
		run.Go(func() { _, _ = w.Run(context.Background()) })
		synctest.Wait()
		before := readings.Load()
		time.Sleep(4900 * time.Millisecond)
		if n := readings.Load() - before; n != 0 {
			t.Errorf("idle for less than Poll: %d reads", n)
		}
		one(t, service, commands.Enqueue{})
		synctest.Wait() // it is busy
		before = readings.Load()
		for range 50 {
			one(t, service, commands.Enqueue{})
			synctest.Wait()
		}
		if n := readings.Load() - before; n != 50 {
			t.Errorf("busy while 50 jobs came: %d reads", n-50)
		}
		close(release)
		run.Wait()
		commandstest.Verify(t, store)
	})
}

// A worker that is never notified still finds its work.
func TestIdleWorkerPollsWithoutNotification(t *testing.T) {
	ledgertest.OfSQLite(t)
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		// In a bubble, one store does not notify the other.
		unnotified, other := ledgertest.OpenAt(t, path), ledgertest.OpenAt(t, path)
		began := make(chan time.Time, 1)
		w := newWorker(&commands.Service{Store: unnotified}, func(context.Context, projection.Job) ([]byte, error) {
			began <- time.Now()
			return nil, nil
		})
		w.Drain, w.MaxJobs = false, 1
		go func() {
			time.Sleep(time.Hour)
			one(t, &commands.Service{Store: other}, commands.Enqueue{})
		}()
		start := time.Now()
		if _, err := w.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := (<-began).Sub(start) - time.Hour; took < 0 || took > 7*time.Second {
			t.Errorf("found it after %v", took)
		}
	})
}

// Several workers that are notified of the same jobs run each job once.
func TestWorkersCompetingRunEachJobOnce(t *testing.T) {
	path := ledgertest.Relaxed(filepath.Join(t.TempDir(), "jobs.db"))
	const jobs = 40
	var mu sync.Mutex
	ran := make(map[string]int)
	all := make(chan struct{})
	var run sync.WaitGroup
	var workers []*worker.Worker
	for i := range 4 {
		service := &commands.Service{Store: ledgertest.OpenAt(t, path)}
		w := newWorker(service, func(_ context.Context, job projection.Job) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			if ran[string(job.Payload)]++; len(ran) == jobs {
				close(all)
			}
			return nil, nil
		})
		w.Process = event.Worker{Name: fmt.Sprint("w", i), Boot: fmt.Sprint("b", i)}
		w.Drain, w.Poll = false, time.Hour
		run.Go(func() { _, _ = w.Run(context.Background()) })
		workers = append(workers, w)
	}
	service := &commands.Service{Store: ledgertest.OpenAt(t, path)}
	for i := range jobs {
		one(t, service, commands.Enqueue{Payload: fmt.Append(nil, i)})
		time.Sleep(time.Duration(i%4) * time.Millisecond) // enqueue at different moments of the poll
	}
	select {
	case <-all:
	case <-time.After(2 * time.Minute):
		mu.Lock()
		t.Errorf("%d of %d jobs began", len(ran), jobs)
		mu.Unlock()
	}
	for _, w := range workers {
		w.Stop()
	}
	run.Wait()
	for payload, times := range ran {
		if times != 1 {
			t.Errorf("job %s ran %d times", payload, times)
		}
	}
	commandstest.Verify(t, service.Store)
}
