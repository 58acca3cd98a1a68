package find

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/projection"
)

// Unused is a queue that has never had a job; its name may be misspelt.
type Unused struct {
	Queue string
	Near  string // the most similar queue that has had one; "": none
}

// String says so in a sentence.
func (u Unused) String() string {
	if u.Near == "" {
		return fmt.Sprintf("queue %s has never had a job", u.Queue)
	}
	return fmt.Sprintf("queue %s has never had a job; did you mean %s?", u.Queue, u.Near)
}

// UnusedQueues returns those of queues that have never had a job.
func UnusedQueues(ctx context.Context, store *ledger.Store, queues []string) (found []Unused, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		for _, queue := range queues {
			unused, err := projection.QueueUnused(ctx, tx, queue)
			if err != nil {
				return err
			}
			if !unused {
				continue
			}
			near, err := NearQueue(ctx, tx, queue)
			if err != nil {
				return err
			}
			found = append(found, Unused{queue, near})
		}
		return nil
	})
	return found, err
}
