package commands

import (
	"context"
	"iter"

	"jobledger/commands/internal/asof"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

func (s *Service) past() asof.Asker {
	return asof.Asker{Store: s.Store, NoStore: ErrNoStore, NoJob: ErrNoJob, Job: jobWith}
}

// GetAsOf returns a job as it was, such as at query.At(t) or query.AtPos(n), with its payload and result. It
// is ErrNoJob of a moment before the job was enqueued, and projection.ErrArchived where only an archive has
// the answer. What has been erased since is gone.
func (s *Service) GetAsOf(ctx context.Context, id event.JobID, at *query.When) (projection.Job, error) {
	return s.past().GetAsOf(ctx, id, at)
}

// OwnerAt returns the claim that held a job at a moment, with its end also where that came later; the zero
// Attempt if none did. Errors are those of GetAsOf.
func (s *Service) OwnerAt(ctx context.Context, id event.JobID, at *query.When) (query.Attempt, error) {
	return s.past().OwnerAt(ctx, id, at)
}

// Why returns what explains the state of a job now. The error is ErrNoJob if there is none.
func (s *Service) Why(ctx context.Context, id event.JobID) (query.Why, error) {
	return s.past().Why(ctx, id)
}

// Attempts returns the claims that were live within a window, in the order in which they began; of q, what is
// not about the window counts. For those of one job set q.Job to its N. Errors: [query.InputError];
// projection.ErrArchived of a window that begins before the first events of the ledger.
func (s *Service) Attempts(ctx context.Context, w query.Window, q query.Attempts) ([]query.Attempt, error) {
	return s.past().Attempts(ctx, w, q)
}

// Waits returns how long the jobs that were claimed within a window had been ready, by queue. Errors are
// those of Attempts.
func (s *Service) Waits(ctx context.Context, w query.Window, q query.Waits) ([]query.Wait, error) {
	return s.past().Waits(ctx, w, q)
}

// Failures returns what failed within a window, by what the failures have in common. Errors are those of
// Attempts.
func (s *Service) Failures(ctx context.Context, w query.Window, q query.Failures) (query.FailureGroups,
	error) {
	return s.past().Failures(ctx, w, q)
}

// Diff returns the jobs whose state at one moment differs from that at another, each kind of change with the
// ids of up to so many jobs, and the workers that came and went. nil is now. Errors are those of Attempts.
func (s *Service) Diff(ctx context.Context, from, to *query.When, jobs int) (query.Diff, error) {
	return s.past().Diff(ctx, from, to, jobs)
}

// ListAsOf returns the jobs that f selects as they were at a moment, the newest first, each with its state
// now. Set f.Limit and f.Before as for List. Errors are those of Attempts.
func (s *Service) ListAsOf(ctx context.Context, f projection.Filter, at *query.When) ([]query.Job, error) {
	return s.past().ListAsOf(ctx, f, at)
}

// QueuesAsOf returns the queues that there were at a moment, by name, and whether they were paused. Errors
// are those of Attempts.
func (s *Service) QueuesAsOf(ctx context.Context, at *query.When) ([]projection.Queue, error) {
	return s.past().QueuesAsOf(ctx, at)
}

// Events yields the events that q selects, the oldest first, up to the end of the ledger as it is when that
// begins. It holds no snapshot while the caller works, and leaves nothing open when the caller stops. An
// error is the last that it yields.
func (s *Service) Events(ctx context.Context, q query.Events) iter.Seq2[event.Event, error] {
	return s.past().Events(ctx, q)
}

// Subscribe yields the events after the position from that q selects, and then each new one as it is
// recorded, until ctx ends or the caller stops; q.To and q.At are not used. Positions have no gaps, so a
// program that goes on from the Pos of the last event that it has handled misses none. It ends with an error:
// that of ctx, or a [query.InputError] where the ledger ends before from, as one that lost its newest events
// does.
func (s *Service) Subscribe(ctx context.Context, q query.Events, from int64) iter.Seq2[event.Event, error] {
	return s.past().Subscribe(ctx, q, from)
}
