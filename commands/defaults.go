package commands

import (
	"context"

	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/projection/defaults"
)

// SetDefaults sets what the jobs of a queue get that set nothing themselves; the zero Spec takes that away.
// It concerns jobs that are enqueued from now on. Whether they carry their commands stays as it is, see
// SetCommands. If nothing would change, changed is false and no event is recorded.
func (s *Service) SetDefaults(ctx context.Context, actor, queue string, to defaults.Spec, reason string) (
	changed bool, err error) {
	if err := (&Enqueue{Queue: queue, MaxAttempts: to.MaxAttempts, MaxRuntime: to.MaxRuntime,
		Backoff: to.Backoff}).Check(); err != nil {
		return false, err
	}
	return s.setQueue(ctx, actor, queue, reason, func(now defaults.Spec) defaults.Spec {
		to.Commands = now.Commands
		return to
	})
}

// SetCommands says whether the jobs of a queue carry their commands from now on: it then takes no others, and
// no other queue takes them. Unless the queue has a default of attempts, they are tried once. Whose commands
// a worker runs is not for the ledger to say. If nothing would change, changed is false and no event is
// recorded.
func (s *Service) SetCommands(ctx context.Context, actor, queue string, on bool, reason string) (
	changed bool, err error) {
	return s.setQueue(ctx, actor, queue, reason, func(to defaults.Spec) defaults.Spec {
		if to.Commands = on; on && to.MaxAttempts == 0 {
			to.MaxAttempts = 1
		}
		return to
	})
}

// setQueue sets what change makes of that which the jobs of a queue get now.
func (s *Service) setQueue(ctx context.Context, actor, queue, reason string,
	change func(now defaults.Spec) defaults.Spec) (changed bool, err error) {
	return s.changeQueue(ctx, actor, queue, reason, func(tx *ledger.Tx) (bool, error) {
		set, err := defaults.Current(ctx, tx)
		if to := change(set[queue].Spec); err == nil && to != set[queue].Spec {
			_, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: to.Body(queue, reason)})
			return true, err
		}
		return false, err
	})
}

// queueDefaults returns the defaults of a queue, in the transaction of a job that is enqueued.
func queueDefaults(ctx context.Context, tx *ledger.Tx, queue string) (defaults.Spec, error) {
	set, err := defaults.Current(ctx, tx)
	return set[queue].Spec, err
}
