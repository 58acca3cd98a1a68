package commands

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

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
// the exception away. It binds the jobs that wait already. If it was so already, changed is false and no
// event is recorded.
func (s *Service) LimitGroup(ctx context.Context, actor, queue, group string, to limit.GroupSpec,
	reason string) (changed bool, err error) {
	if group == "" {
		return false, &InvalidError{"group", `""`, "the name of a group"}
	}
	if err := checkGroup(group); err != nil {
		return false, err
	}
	if err := checkLimit(limit.Spec{Running: to.Running, Rate: to.Rate}); err != nil {
		return false, err
	}
	return s.setLimit(ctx, actor, to.Body(queue, group, reason), func(l limit.Limit) bool {
		return l.Exceptions[group].GroupSpec != to
	})
}

// setLimit records b if it changes the limits of its queue.
func (s *Service) setLimit(ctx context.Context, actor string, b *event.QueueLimited,
	changes func(limit.Limit) bool) (changed bool, err error) {
	if err := CheckQueue(b.Queue); err != nil {
		return false, err
	}
	if err := CheckText("reason", b.Reason, MaxReason); err != nil {
		return false, err
	}
	if err := CheckActor(actor); err != nil {
		return false, err
	}
	err = s.Store.Write(ctx, func(tx *ledger.Tx) error {
		l, err := limit.Of(ctx, tx, b.Queue)
		if changed = changes(l); err != nil || !changed {
			return err
		}
		_, err = journal.Record(ctx, tx, journal.Fact{Actor: actor, Body: b})
		return err
	})
	return changed && err == nil, err
}

func checkLimit(s limit.Spec) error {
	if s.Running < 0 || s.Running > event.MaxRunning {
		return &InvalidError{"running", fmt.Sprint(s.Running), "0 to 1000000"}
	}
	if s.PerGroup < 0 || s.PerGroup > event.MaxRunning {
		return &InvalidError{"per_group", fmt.Sprint(s.PerGroup), "0 to 1000000"}
	}
	if s.Ageing < 0 || s.Ageing > event.MaxRatePer || s.Ageing != s.Ageing.Truncate(time.Microsecond) {
		return &InvalidError{"ageing", s.Ageing.String(), "up to 31 days, in whole microseconds"}
	}
	if err := checkRate("", s.Rate); err != nil {
		return err
	}
	return checkRate("group_", s.PerGroupRate)
}

// checkRate checks a rate; the names of its fields begin with prefix.
func checkRate(prefix string, r limit.Rate) error {
	switch {
	case r.N < 0 || r.N > event.MaxRunning:
		return &InvalidError{prefix + "rate", fmt.Sprint(r.N), "0 to 1000000"}
	case r.Per < 0 || r.Per > event.MaxRatePer || r.Per != r.Per.Truncate(time.Microsecond):
		return &InvalidError{prefix + "rate_per", r.Per.String(), "up to 31 days, in whole microseconds"}
	case (r.N > 0) != (r.Per > 0):
		return &InvalidError{prefix + "rate_per", r.Per.String(), "a time with a rate, and none without"}
	case r.Burst < 0 || r.Burst > event.MaxRunning || r.Burst > 0 && r.N == 0:
		return &InvalidError{prefix + "burst", fmt.Sprint(r.Burst), "0 to 1000000 with a rate, and none without"}
	}
	return nil
}

// checkGroup checks the name of a group; "" is none.
func checkGroup(name string) error {
	if err := CheckText("group", name, event.MaxGroup); err != nil {
		return err
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return &InvalidError{"group", fmt.Sprintf("%.80q", name), "text without control characters"}
	}
	return nil
}
