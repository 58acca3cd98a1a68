package jobledgertest

import (
	"time"

	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Process is the worker process of all attempts.
var Process = event.Worker{Name: "test", Boot: "01KDY9FY880000000000000000", Host: "test", PID: 1}

// Run enqueues a job, makes one attempt at it with h, and returns the job after that. No other job of its
// queue may be ready.
func (l *Ledger) Run(h worker.Handler, e commands.Enqueue) projection.Job {
	l.t.Helper()
	job := l.Add(e)
	ran := event.JobID("")
	l.work(&worker.Worker{Handler: h, Queues: []string{job.Queue}, MaxJobs: 1, Hooks: worker.Hooks{
		Started: func(j projection.Job, _ time.Duration) { ran = j.ID },
	}})
	if ran != job.ID {
		l.t.Fatalf("got a run of %[2]q, want one of job %[1]s; it is:\n%[3]s", job.ID, ran, l.History(job.ID))
	}
	return l.Job(job.ID)
}

// Drain works on the jobs that are ready, one after the other, until none is, and returns how they ended.
// Schedules that are due make their jobs first. Without queues, h must be a [worker.Mux], and its queues are
// drained.
func (l *Ledger) Drain(h worker.Handler, queues ...string) worker.Stats {
	l.t.Helper()
	ticker := schedule.Ticker{Service: l.Service, Actor: "sweeper:" + Process.Name}
	if _, err := ticker.Tick(l.t.Context()); err != nil {
		l.t.Fatalf("schedules: %v", err)
	}
	return l.work(&worker.Worker{Handler: h, Queues: queues})
}

// RunToEnd is Drain until no job of these queues is queued: it moves the clock to the time at which the next
// one is due. So all retries and snoozes happen, without a wait.
func (l *Ledger) RunToEnd(h worker.Handler, queues ...string) (all worker.Stats) {
	l.t.Helper()
	if mux, ok := h.(*worker.Mux); ok && len(queues) == 0 {
		queues = mux.Queues()
	}
	for {
		s := l.work(&worker.Worker{Handler: h, Queues: queues})
		all = worker.Stats{
			Claimed: all.Claimed + s.Claimed, Succeeded: all.Succeeded + s.Succeeded, Failed: all.Failed + s.Failed,
			Released: all.Released + s.Released, Lost: all.Lost + s.Lost, Cancelled: all.Cancelled + s.Cancelled,
		}
		due, ok := l.nextDue(queues)
		switch {
		case !ok:
			return all
		case due.After(l.Now()):
			l.Set(due)
		case s.Claimed == 0:
			l.t.Fatalf("jobs of %q are ready and not claimed: their queue is paused or limited, or they require "+
				"what the test's worker does not have", queues)
		}
	}
}

// nextDue returns when the next queued job may run.
func (l *Ledger) nextDue(queues []string) (due time.Time, ok bool) {
	l.t.Helper()
	err := l.Store.Read(l.t.Context(), func(tx *ledger.Tx) error {
		queued, err := projection.List(l.t.Context(), tx,
			projection.Filter{States: []event.State{event.Queued}, Queues: queues})
		for _, j := range queued {
			if !ok || j.RunAt.Before(due) {
				due, ok = j.RunAt, true
			}
		}
		return err
	})
	if err != nil {
		l.t.Fatalf("list jobs: %v", err)
	}
	return due, ok
}

// work runs w on this ledger until nothing is ready.
func (l *Ledger) work(w *worker.Worker) worker.Stats {
	l.t.Helper()
	w.Service, w.Process, w.Drain, w.SweepEvery = l.Service, Process, true, -1
	stats, err := w.Run(l.t.Context())
	if err != nil {
		l.t.Fatalf("work: %v", err)
	}
	return stats
}
