package work

import (
	"context"
	"errors"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
)

// donePoll is how often --until-done looks at most whether all is done.
const donePoll = 300 * time.Millisecond

// errStuck says that waiting does not help: the remaining jobs are paused or held.
var errStuck = errors.New("what is left is paused or held")

// doneWatch stops a worker once all jobs of its queues have ended, or --timeout is over.
type doneWatch struct {
	began time.Time
	over  context.CancelFunc
	why   chan error // once: nil, errStuck, context.DeadlineExceeded, context.Canceled or an error of the ledger
}

// watchDone begins to watch what is left in the queues of w. giveUp ends the commands under way,
// --grace-period after --timeout.
func (p *Verbs) watchDone(c *cli.Context, w *worker.Worker, giveUp func()) *doneWatch {
	ctx, cancel := context.WithCancel(c.Context)
	d := &doneWatch{began: p.Now(), over: cancel, why: make(chan error, 1)}
	limited, stop := ctx, func() {}
	if limit, ok := cli.DurationValue(c, "timeout"); ok {
		limited, stop = context.WithTimeout(ctx, limit)
	}
	go func() {
		defer stop()
		err := untilDone(limited, w, p.Now, &await.Outage{Say: p.Message})
		d.why <- err
		w.Stop()
		if grace, ok := cli.DurationValue(c, "grace-period"); ok && errors.Is(err, context.DeadlineExceeded) {
			select {
			case <-ctx.Done():
			case <-time.After(grace):
				giveUp()
			}
		}
	}()
	return d
}

// untilDone waits until the queues of w have no job left that has not ended. errStuck says that the rest
// waits for people.
func untilDone(ctx context.Context, w *worker.Worker, now func() time.Time, outage *await.Outage) error {
	for {
		started := time.Now()
		rest, err := whatIsLeft(ctx, w.Service, w.Queues, now())
		stuck := false
		if err == nil && len(rest) > 0 {
			stuck, err = waitsForPeople(ctx, w.Service.Store, w.Queues, rest)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if err = outage.Outlast(ctx, w.Service.Store, err); err != nil {
				return err
			}
			continue
		case len(rest) == 0:
			return nil
		case stuck:
			return errStuck
		}
		outage.Over()
		select {
		case <-time.After(max(donePoll, 10*time.Since(started))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// waitsForPeople reports whether nothing of rest goes on without a person: each job is in a paused queue, or
// held, or waits for one of these. A job that waits for one of another queue may go on.
func waitsForPeople(ctx context.Context, store *ledger.Store, queues []string, rest []left) (all bool,
	err error) {
	blocked := int64(0)
	for _, l := range rest {
		if l.held > 0 || l.ready+l.later > 0 && !l.paused.Paused {
			return false, nil
		}
		blocked += l.blocked
	}
	if blocked == 0 {
		return true, nil
	}
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		open, err := projection.List(ctx, tx, projection.Filter{Queues: queues,
			States: []event.State{event.Queued, event.Blocked}})
		if err != nil {
			return err
		}
		edges, err := deps.All(ctx, tx)
		if err != nil {
			return err
		}
		stays := map[int64]bool{0: true} // a hold
		for _, j := range open {
			stays[j.N] = true
		}
		waits := make(map[int64]bool)
		for _, e := range edges {
			waits[e.Child] = waits[e.Child] || stays[e.Parent] && !e.Broken
		}
		all = true
		for _, j := range open {
			all = all && (j.State == event.Queued || waits[j.N])
		}
		return nil
	})
	return all, err
}

// end ends the watch of a worker that has ended, and returns the error that says how it went.
func (d *doneWatch) end(ctx context.Context, p *Verbs, w *worker.Worker) error {
	d.over()
	why := <-d.why
	if why != nil && !errors.Is(why, errStuck) && !errors.Is(why, context.Canceled) &&
		!errors.Is(why, context.DeadlineExceeded) {
		return why
	}
	if why != nil {
		if err := p.sayWhatIsLeft(ctx, w); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(why, context.DeadlineExceeded):
		return cli.Exitf(cli.ExitTimedOut, "timed out: jobs of %s have not ended", strings.Join(w.Queues, ", "))
	case errors.Is(why, errStuck):
		return cli.WithHint(cli.Exitf(cli.ExitBusy, "not all is done: %w", why),
			"'jobledger resume -q QUEUE', 'jobledger unblock JOB'")
	case why != nil:
		return cli.Exitf(cli.ExitBusy, "stopped before all was done")
	}
	failed := 0
	err := w.Service.Store.Read(ctx, func(tx *ledger.Tx) error {
		found, err := projection.List(ctx, tx, projection.Filter{Queues: w.Queues, FinishedFrom: d.began,
			States: []event.State{event.FailedState, event.CancelledState}})
		failed = len(found)
		return err
	})
	if err == nil && failed > 0 {
		err = cli.Exitf(cli.ExitNotSucceeded, "%s did not succeed", words.Count(int64(failed), "job"))
	}
	return err
}
