package commands

import (
	"time"

	"jobledger/commands/internal/check"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Backoff returns how long a job that sets no other backoff waits after its nth failure:
// min(1 s · 2^(n−1), 1 h), ± 20 %.
func Backoff(job event.JobID, attempt, failures int) time.Duration {
	return check.Jitter(event.DefaultBackoff.Wait(failures), job, attempt)
}

// backoff returns how long j waits after its nth failure.
func backoff(j projection.Job, failures int) time.Duration {
	return check.Jitter(j.Backoff.Wait(failures), j.ID, j.Attempt)
}
