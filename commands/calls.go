package commands

import (
	"cmp"
	"context"
	"time"

	"jobledger/commands/internal/asof"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/defaults"
	"jobledger/projection/limit"
	"jobledger/projection/query"
)

// What a program says about a queue: see Service.Limit, LimitGroup and SetDefaults.
type (
	Limits      = limit.Spec      // how many of its jobs run at once, or start within a time; and per group
	GroupLimits = limit.GroupSpec // the same for one group of it
	Rate        = limit.Rate      // so many starts within a time
	Defaults    = defaults.Spec   // attempts, max runtime and backoff of jobs that set nothing themselves
)

// How long a key is a job's own: the values of Enqueue.UniqueWhile.
const (
	WhileQueued     = event.WhileQueued     // until it is claimed
	WhileUnfinished = event.WhileUnfinished // until it has ended
)

// Heartbeat extends the lease of a job that Claim returned, and may report progress. c must have the token of
// job; a Lease of 0 is DefaultLease. The job that it returns has the new LeaseUntil.
//
// This and the other calls of a claim's owner act as "worker:" and the name of job.Worker. They need ID,
// Token and Worker of job, and send its token: where that is not live any more, nothing changes, and the
// error is a RefusedError, which is ErrLeaseLost, ErrCancelled or ErrConflict. They call Apply, and return
// its errors too.
func (s *Service) Heartbeat(ctx context.Context, job projection.Job, c Heartbeat) (projection.Job, error) {
	c.Token = job.Token
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	return s.applyAsOwner(ctx, job, c)
}

// Complete ends a job that Claim returned as succeeded, with a result of up to MaxPayload bytes; nil stores
// none. It calls Apply with a Succeed; see Heartbeat for the errors.
func (s *Service) Complete(ctx context.Context, job projection.Job, result []byte) (projection.Job, error) {
	return s.applyAsOwner(ctx, job, Succeed{Token: job.Token, Result: result})
}

// Fail ends the attempt of a job that Claim returned as failed: the job is queued again, or, where c or the
// number of its attempts says so, it has failed for good. The token of c is that of job; see Heartbeat for
// the errors.
func (s *Service) Fail(ctx context.Context, job projection.Job, c Fail) (projection.Job, error) {
	c.Token = job.Token
	return s.applyAsOwner(ctx, job, c)
}

// Release gives a job that Claim returned back to its queue, which is not a failure and uses up no attempt.
// It may be claimed again after c.Delay. The token of c is that of job; see Heartbeat for the errors.
func (s *Service) Release(ctx context.Context, job projection.Job, c Release) (projection.Job, error) {
	c.Token = job.Token
	return s.applyAsOwner(ctx, job, c)
}

// Snooze is Release with c.Snooze: the job itself asks to run later, at most MaxSnoozes times.
func (s *Service) Snooze(ctx context.Context, job projection.Job, delay time.Duration) (projection.Job,
	error) {
	return s.Release(ctx, job, Release{Delay: delay, Snooze: true})
}

func (s *Service) applyAsOwner(ctx context.Context, job projection.Job, c ownerCommand) (projection.Job,
	error) {
	if job.Worker.Name == "" {
		return projection.Job{}, &InvalidError{"worker", `""`,
			"a job as Claim returned it; Apply has another name for who acts"}
	}
	return s.Apply(ctx, "worker:"+job.Worker.Name, job.ID, c)
}

// Cancel ends a job that has not ended, for a reason that may be "". A worker that runs it stops at once.
// Cancelling it twice changes nothing. This call and the following ones are for operators. They call Apply,
// and return its errors.
func (s *Service) Cancel(ctx context.Context, actor string, id event.JobID, reason string) (
	projection.Job, error) {
	return s.Apply(ctx, actor, id, Cancel{Reason: reason})
}

// Retry queues a job that has ended again, with all of its attempts. The zero c retries it whatever its end
// was.
func (s *Service) Retry(ctx context.Context, actor string, id event.JobID, c Retry) (projection.Job, error) {
	return s.Apply(ctx, actor, id, c)
}

// Reschedule changes the run_at or the priority of a job that waits.
func (s *Service) Reschedule(ctx context.Context, actor string, id event.JobID, c Reschedule) (
	projection.Job, error) {
	return s.Apply(ctx, actor, id, c)
}

// Unblock lifts the hold of a job that was enqueued with one.
func (s *Service) Unblock(ctx context.Context, actor string, id event.JobID, reason string) (
	projection.Job, error) {
	return s.Apply(ctx, actor, id, Unblock{Reason: reason})
}

// Erase removes the payload and the results of a job for good; its history stays.
func (s *Service) Erase(ctx context.Context, actor string, id event.JobID, reason string) (
	projection.Job, error) {
	return s.Apply(ctx, actor, id, Erase{Reason: reason})
}

// Get returns a job as it is now, with its payload and result. The error is ErrNoJob if there is none.
func (s *Service) Get(ctx context.Context, id event.JobID) (projection.Job, error) {
	return asof.Read(ctx, s.past(), func(tx *ledger.Tx) (j projection.Job, err error) {
		if j, err = jobWith(ctx, tx, id); err != nil {
			return j, err
		}
		return j, projection.LoadBodies(ctx, tx, &j)
	})
}

// List returns the jobs that f selects, the newest first, without payloads and results. Set f.Limit where
// there may be many, and f.Before to the N of the last one for the next page.
func (s *Service) List(ctx context.Context, f projection.Filter) (jobs []projection.Job, err error) {
	return asof.Read(ctx, s.past(), func(tx *ledger.Tx) ([]projection.Job, error) {
		return projection.List(ctx, tx, f)
	})
}

// History returns all events of a job, the oldest first. The error is ErrNoJob if there is no such job.
func (s *Service) History(ctx context.Context, id event.JobID) ([]event.Event, error) {
	return asof.Read(ctx, s.past(), func(tx *ledger.Tx) ([]event.Event, error) {
		j, err := jobWith(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		h, err := query.History{Job: j.N}.Read(ctx, tx)
		return h.Events, err
	})
}
