package commands

import (
	"cmp"
	"time"

	"jobledger/ledger/event"
)

// TakeOver lets another process of the worker hold the claim, with the same token, and extends the lease.
type TakeOver struct {
	Token   string
	Owner   string        // as in Heartbeat
	Process event.Worker  // with the name of the worker that holds the claim, and a Boot of its own
	Lease   time.Duration // from now on; required
}

func (TakeOver) name() string { return "take_over" }

func (c TakeOver) credentials() (token, owner string) { return c.Token, c.Owner }

func (c TakeOver) check() error {
	return cmp.Or(checkCredentials(c), CheckWorker(c.Process), CheckLease(c.Lease))
}
