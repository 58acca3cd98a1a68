package commands

import (
	"hash/fnv"
	"strconv"
	"time"

	"jobledger/ledger/event"
	"jobledger/projection"
)

// Backoff returns how long a job that sets no other backoff waits after its nth failure:
// min(1 s · 2^(n−1), 1 h), ± 20 %.
func Backoff(job event.JobID, attempt, failures int) time.Duration {
	return jitter(event.DefaultBackoff.Wait(failures), job, attempt)
}

// backoff returns how long j waits after its nth failure.
func backoff(j projection.Job, failures int) time.Duration {
	return jitter(j.Backoff.Wait(failures), j.ID, j.Attempt)
}

// jitter returns wait ± 20 %, by a hash of job and attempt: jobs that failed at once do not return at once,
// and the rules need no random numbers.
func jitter(wait time.Duration, job event.JobID, attempt int) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(job) + "/" + strconv.Itoa(attempt)))
	share := h.Sum64() >> 11 % 4001 // 0…4000 ten-thousandths
	return (wait / time.Microsecond * time.Duration(8000+share) / 10000) * time.Microsecond
}
