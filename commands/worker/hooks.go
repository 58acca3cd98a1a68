package worker

import (
	"time"

	"jobledger/projection"
)

// Hooks let a program measure what its worker does; a nil one is not called. They are called after the commit of what
// they tell, one at a time, on the goroutine that also keeps the leases: they must return at once.
type Hooks struct {
	// Started tells of a job that was claimed and begins. waited is how long it was ready before, by the ledger's clock.
	Started func(job projection.Job, waited time.Duration)

	// Ended tells what became of that claim, with the job as it is then: a failed one is queued where it will be tried
	// again. took is how long the work ran.
	Ended func(job projection.Job, how Ending, took time.Duration)
}

// Ending is how a claim ended.
type Ending string

// Lost stands for a claim that somebody else ended, or whose end could not be recorded in time.
const (
	Succeeded Ending = "succeeded"
	Failed    Ending = "failed"
	Released  Ending = "released"
	Lost      Ending = "lost"
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
	}
	if l.Hooks.Ended != nil {
		l.Hooks.Ended(job, how, t.took)
	}
}
