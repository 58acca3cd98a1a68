package work

import (
	"sync"

	"jobledger/ledger/event"
	"jobledger/projection"
)

// maxKnown is how many claims the room remembers.
const maxKnown = 8192

// known are claims as their owners were answered last, by their tokens. A command on such a copy need not
// read the row first, as that of a worker that has opened the ledger: where the copy is out of date, the
// compare-and-swap of the row detects it.
type known struct {
	mu  sync.Mutex
	all map[string]projection.Job
}

// put remembers claims, without their payloads.
func (k *known) put(jobs ...projection.Job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all)+len(jobs) > maxKnown {
		k.all = make(map[string]projection.Job)
	}
	for _, j := range jobs {
		if j.Token != "" && j.N != 0 && j.State.Held() {
			j.Payload = nil
			k.all[j.Token] = j
		}
	}
}

// get returns the job with this id that was claimed with token; only the id if the job is unknown.
func (k *known) get(id event.JobID, token string) projection.Job {
	k.mu.Lock()
	defer k.mu.Unlock()
	if j, ok := k.all[token]; ok && j.ID == id {
		return j
	}
	return projection.Job{ID: id}
}

// forget drops a claim that has ended.
func (k *known) forget(token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, token)
}
