package commands

import (
	"hash/fnv"
	"strconv"
	"time"

	"jobledger/ledger/event"
)

// Backoff returns how long a job waits after its nth failure: min(1 s · 2^(n−1), 1 h), ± 20 %. The jitter is
// a hash of job and attempt: jobs that failed at once do not return at once, and the rules need no random
// numbers.
func Backoff(job event.JobID, attempt, failures int) time.Duration {
	base := time.Hour
	if failures < 13 { // 2^12 s is more than an hour
		base = min(base, time.Second<<max(failures-1, 0))
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(job) + "/" + strconv.Itoa(attempt)))
	share := h.Sum64() >> 11 % 4001 // 0…4000 ten-thousandths
	return (base * time.Duration(8000+share) / 10000).Truncate(time.Microsecond)
}
