package check

import (
	"hash/fnv"
	"strconv"
	"time"

	"jobledger/ledger/event"
)

// Jitter returns wait ± 20 %, by a hash of job and attempt: jobs that failed at once do not return at once,
// and the rules need no random numbers.
func Jitter(wait time.Duration, job event.JobID, attempt int) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(job) + "/" + strconv.Itoa(attempt)))
	share := h.Sum64() >> 11 % 4001 // 0…4000 ten-thousandths
	return (wait / time.Microsecond * time.Duration(8000+share) / 10000) * time.Microsecond
}
