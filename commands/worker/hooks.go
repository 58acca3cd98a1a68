package worker

import (
	"time"

	"jobledger/projection"
)

// Hooks let a program measure its worker. A nil hook is not called. Hooks are called after the commit of what
// they report, one at a time, on the goroutine that also renews the leases: they must return at once.
type Hooks struct {
	// Started is called when a job was claimed and begins. waited is how long the job was ready before, by the
	// ledger's clock.
	Started func(job projection.Job, waited time.Duration)

	// Ended is called when a claim has ended, with the job after its end: a failed job that is retried is
	// queued. took is how long the work ran.
	Ended func(job projection.Job, how Ending, took time.Duration)

	// Stuck is called when a Handler still runs though it was asked to stop: 1 s after that, 10 s, and then each
	// minute. cause is why it was to stop, since for how long, and running how many Handlers of this worker do
	// not stop. The answer says whether the worker claims another job in its place.
	Stuck func(job projection.Job, cause error, since time.Duration, running int) Slot

	// Alive is called once in 15 s at least, while the worker claims, waits and heartbeats as it should: not
	// while it hangs, or while the ledger keeps it waiting. It is for the watchdog of a service manager.
	Alive func()
}

// Ending is how a claim ended.
type Ending string

// The endings of a claim. Cancelled means that an operator cancelled the job. Lost means that another
// process ended the claim in another way, or that its end was not recorded in time.
const (
	Succeeded Ending = "succeeded"
	Failed    Ending = "failed"
	Released  Ending = "released"
	Lost      Ending = "lost"
	Cancelled Ending = "cancelled"
)

// report counts the end of a claim and calls the hook.
func (l *loop) report(t *task, job projection.Job, how Ending) {
	switch how {
	case Succeeded:
		l.stats.Succeeded++
	case Failed:
		l.stats.Failed++
	case Released:
		l.stats.Released++
	case Lost:
		l.stats.Lost++
	case Cancelled:
		l.stats.Cancelled++
	}
	if l.Hooks.Ended != nil {
		l.Hooks.Ended(job, how, t.took)
	}
}
