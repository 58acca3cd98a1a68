// Package await waits until something happens in a ledger, or to a process. It polls, at most so often that
// it keeps no core busy, and stops when its context ends. A reader that waits remembers the end of what it
// saw ([SeenEnd]), so that it notices when the ledger is another one than before: a standby that takes over
// without the last events soon has others in their place, and so has a server that lost them in a crash. The
// length of the ledger alone does not show that.
//
// Held by TestEndsReturnsOpenJobs, TestLongerFindsALedgerThatLacksEvents, TestOutageIsOutlasted and
// TestProcessEndStopsWithContext here, and by TestStreamResetsAfterFailoverThatLostEvents of the server.
package await

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/inbox"
)

// How often is polled at most.
const (
	tailPoll    = 100 * time.Millisecond // reads one row
	endPoll     = 150 * time.Millisecond // reads a row for each job
	processPoll = 200 * time.Millisecond
)

// Ends waits until all of the jobs have ended, and outlasts outages of the server. ended gets those that
// have, once each, some at a time. On an error, such as that of a context that is over, it returns the jobs
// that are still open.
func Ends(ctx context.Context, store *ledger.Store, jobs []event.JobID, o *Outage,
	ended func([]projection.Job) error) (open []event.JobID, err error) {
	for {
		started := time.Now()
		done, rest, err := divide(ctx, store, jobs)
		if err != nil {
			if err = o.Outlast(ctx, store, err); err == nil {
				continue
			}
			return jobs, err
		}
		o.Over()
		jobs = rest
		err = ended(done)
		if err == nil && len(jobs) == 0 {
			return nil, nil
		}
		if err == nil { // many jobs must not keep a core busy
			err = sleep(ctx, max(endPoll, 5*time.Since(started)))
		}
		if err != nil {
			return jobs, err
		}
	}
}

// None waits until no job is left that f selects, and outlasts outages of the server.
func None(ctx context.Context, store *ledger.Store, f projection.Filter, o *Outage) error {
	f.Limit = 1
	for {
		started := time.Now()
		left := 0
		err := store.Read(ctx, func(tx *ledger.Tx) error {
			found, err := projection.List(ctx, tx, f)
			left = len(found)
			return err
		})
		if err != nil {
			if err = o.Outlast(ctx, store, err); err != nil {
				return err
			}
			continue
		}
		o.Over()
		if left == 0 {
			return nil
		}
		if err := sleep(ctx, max(endPoll, 5*time.Since(started))); err != nil {
			return err
		}
	}
}

// divide returns the jobs that have ended and the ids of the others.
func divide(ctx context.Context, store *ledger.Store, ids []event.JobID) (ended []projection.Job,
	open []event.JobID, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		for _, id := range ids {
			j, ok, err := projection.Get(ctx, tx, id)
			switch {
			case err != nil:
				return err
			case !ok:
				if place, err := inbox.Where(ctx, tx, id); err != nil || !place.Waits {
					return cmp.Or(err, inbox.Missing(ctx, tx, id, commands.ErrNoJob))
				}
				open = append(open, id)
			case j.State.Final():
				ended = append(ended, j)
			default:
				open = append(open, id)
			}
		}
		return nil
	})
	return ended, open, err
}

// Comes reports whether a job that the ledger does not have waits in its inbox.
func Comes(ctx context.Context, store *ledger.Store, id event.JobID) bool {
	place, err := ledger.Read(ctx, store, func(tx *ledger.Tx) (inbox.Place, error) {
		return inbox.Where(ctx, tx, id)
	})
	return err == nil && place.Waits
}

// look compares the ledger, whose last event is at tail, with what was seen, and takes in its end.
// ErrReplaced says that it lacks what was seen.
func look(ctx context.Context, tx *ledger.Tx, end *SeenEnd, tail int64) error {
	holds, err := end.Holds(ctx, tx, tail)
	switch {
	case err != nil:
		return err
	case tail < end.Pos:
		return fmt.Errorf("%w: it ends with the event %d, and had %d before", ledger.ErrReplaced, tail, end.Pos)
	case !holds:
		return fmt.Errorf("%w: its event %d is another one than before", ledger.ErrReplaced, end.Pos)
	}
	return end.Move(ctx, tx, tail)
}

// Longer waits until the ledger has events after the pos after, and returns the pos of the last one. It
// returns after itself when ctx ends, or gone reports that the reader of the output went away. It outlasts
// outages of the server, and returns ErrReplaced if the ledger lacks what was seen, as after a failover that
// lost events.
func Longer(ctx context.Context, store *ledger.Store, after int64, end *SeenEnd, o *Outage,
	gone func() bool) (tail int64, err error) {
	for tail = after; tail <= after; {
		if gone() || sleep(ctx, tailPoll) != nil {
			return after, nil
		}
		err := store.Read(ctx, func(tx *ledger.Tx) (err error) {
			if tail, err = tx.Tail(ctx); err == nil {
				err = look(ctx, tx, end, tail)
			}
			return err
		})
		switch {
		case ctx.Err() != nil:
			tail = after
		case err != nil:
			if err = o.Outlast(ctx, store, err); err != nil && ctx.Err() == nil {
				return after, err
			}
			tail = after
		default:
			o.Over()
		}
	}
	return tail, nil
}

// ProcessEnd waits until there is no process pid, as far as this one may know.
func ProcessEnd(ctx context.Context, pid int) {
	for processExists(pid) && sleep(ctx, processPoll) == nil {
	}
}

// processExists reports whether a process has this number, as far as this process may see.
func processExists(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = process.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, syscall.EPERM)
}

// sleep waits for d, or until ctx ends, which is an error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
