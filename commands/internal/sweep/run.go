package sweep

import (
	"context"
	"sync"
	"time"
)

// Run calls sweep at once and then after every interval, or sooner if a grace period ends, until ctx is done,
// and also likewise, in a goroutine of its own; nil: nothing. It calls report after each sweep, and for an
// error of also. When it returns, also has returned too.
func Run(ctx context.Context, every time.Duration, also func(context.Context) error,
	sweep func() (Report, error), report func(Report, error)) {
	failed := make(chan error)
	if also != nil {
		var running sync.WaitGroup
		running.Go(func() { runAlso(ctx, every, also, failed) })
		defer running.Wait()
	}
	for {
		r, err := sweep()
		if ctx.Err() != nil && len(r.Reclaimed) == 0 {
			return
		}
		report(r, err)
		wait := every
		if r.Waiting > 0 {
			wait = min(every, max(r.Wait, 100*time.Millisecond))
		}
		for next := time.After(wait); next != nil; {
			select {
			case <-ctx.Done():
				return
			case err := <-failed:
				report(Report{}, err)
			case <-next:
				next = nil
			}
		}
	}
}

// runAlso calls also at once and then after every interval, until ctx is done.
func runAlso(ctx context.Context, every time.Duration, also func(context.Context) error,
	failed chan<- error) {
	for {
		if err := also(ctx); err != nil {
			select {
			case failed <- err:
			case <-ctx.Done():
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}
