package commands

import (
	"context"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/projection/defaults"
)

// SetDefaults sets what the jobs of a queue get that set nothing themselves; the zero Spec takes that away.
// It concerns jobs that are enqueued from now on. If it was so already, changed is false and no event is
// recorded.
func (s *Service) SetDefaults(ctx context.Context, actor, queue string, to defaults.Spec, reason string) (
	changed bool, err error) {
	if err := (&Enqueue{Queue: queue, MaxAttempts: to.MaxAttempts, MaxRuntime: to.MaxRuntime,
		Backoff: to.Backoff}).Check(); err != nil {
		return false, err
	}
	return s.changeQueue(ctx, actor, queue, reason, func(tx *ledger.Tx) (bool, error) {
		set, err := defaults.Current(ctx, tx)
		if err != nil || set[queue].Spec == to {
			return false, err
		}
		_, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: to.Body(queue, reason)})
		return true, err
	})
}

// queueDefaults returns the defaults of a queue, in the transaction of a job that is enqueued.
func queueDefaults(ctx context.Context, tx *ledger.Tx, queue string) (defaults.Spec, error) {
	set, err := defaults.Current(ctx, tx)
	return set[queue].Spec, err
}
