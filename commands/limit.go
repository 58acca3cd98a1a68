package commands

import (
	"cmp"
	"context"

	"jobledger/commands/internal/check"
	"jobledger/commands/internal/journal"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/limit"
)

// Limit sets the limits of a queue; the zero Spec takes them away, with the exceptions of its groups. They
// bind the jobs that wait already, and at once: jobs that run go on, and none starts while there are as many
// as the limits allow. If the limits were these already, changed is false and no event is recorded.
func (s *Service) Limit(ctx context.Context, actor, queue string, to limit.Spec, reason string) (changed bool,
	err error) {
	if err := checkLimit(to); err != nil {
		return false, err
	}
	return s.setLimit(ctx, actor, to.Body(queue, reason), func(l limit.Limit) bool {
		return l.Spec != to || to == limit.Spec{} && l.Active()
	})
}

// LimitGroup sets what bounds one group of a queue, in place of what bounds each; the zero GroupSpec takes
// the exception away. It binds the jobs that wait already. If nothing would change, changed is false and no
// event is recorded.
func (s *Service) LimitGroup(ctx context.Context, actor, queue, group string, to limit.GroupSpec,
	reason string) (changed bool, err error) {
	if group == "" {
		return false, &InvalidError{"group", `""`, "the name of a group"}
	}
	err = cmp.Or(invalid(check.Group(group)), checkLimit(limit.Spec{Running: to.Running, Rate: to.Rate}))
	if err != nil {
		return false, err
	}
	return s.setLimit(ctx, actor, to.Body(queue, group, reason), func(l limit.Limit) bool {
		return l.Exceptions[group].GroupSpec != to
	})
}

// setLimit records b if it changes the limits of its queue.
func (s *Service) setLimit(ctx context.Context, actor string, b *event.QueueLimited,
	changes func(limit.Limit) bool) (changed bool, err error) {
	return s.changeQueue(ctx, actor, b.Queue, b.Reason, func(tx *ledger.Tx) (bool, error) {
		l, err := limit.Of(ctx, tx, b.Queue)
		if err != nil || !changes(l) {
			return false, err
		}
		_, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: b})
		return true, err
	})
}

func checkLimit(s limit.Spec) error {
	if field, got, allowed := s.Wrong(); field != "" {
		return &InvalidError{field, got, allowed}
	}
	return nil
}
