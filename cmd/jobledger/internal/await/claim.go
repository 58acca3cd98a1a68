package await

import (
	"context"
	"math/rand/v2"
	"time"

	"jobledger/commands"
	"jobledger/projection"
)

// claimPoll is how often a claim that waits looks without having been woken.
const claimPoll = 5 * time.Second

// Claim claims on behalf of actor, and waits for that as long as wait if nothing is ready; then it returns
// no job. It looks by reading, when it is woken or when the next job is due.
func Claim(ctx context.Context, service *commands.Service, actor string, r commands.ClaimRequest,
	wait time.Duration, now func() time.Time) ([]projection.Job, error) {
	if wait == 0 {
		_, jobs, err := service.ApplyAndClaim(ctx, actor, nil, r)
		return jobs, err
	}
	end := time.Now().Add(wait)
	woken, unsubscribe := service.Store.Watch()
	defer unsubscribe()
	for {
		ready, due, err := service.Ready(ctx, r)
		if err != nil {
			return nil, err
		}
		pause := claimPoll
		if !due.IsZero() {
			pause = min(pause, due.Sub(now()))
		}
		if ready {
			_, jobs, err := service.ApplyAndClaim(ctx, actor, nil, r)
			if err != nil || len(jobs) > 0 {
				return jobs, err
			}
			pause = 0 // another worker was faster
		}
		left := time.Until(end)
		if left <= 0 {
			return nil, nil
		}
		timer := time.NewTimer(min(left, max(pause, 0)+rand.N(5*time.Millisecond))) // #nosec G404 -- no secret
		select {
		case <-woken:
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		timer.Stop()
	}
}
