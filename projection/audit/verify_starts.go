package audit

import (
	"context"
	"errors"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/limit"
)

// claimsPage is how many claims beginStarts reads at first; then four times as many, and so on.
var claimsPage = 1000

// jobOfStart is what a rate asks of a job.
type jobOfStart struct{ queue, group string }

// beginStarts restores what the starts up to since have used of the rates. It looks back for as long as it
// matters: to where the same follows whether the claims before had used nothing, or all that the rates
// permit. That is after a short pause; for a queue that uses its whole burst all the time it is the event
// that set the rate.
func (v *verifier) beginStarts(ctx context.Context) error {
	rated := false
	for _, l := range v.fold.Limits {
		rated = rated || l.Rate.N > 0 || l.HasGroupRates()
	}
	jobs := make(map[int64]jobOfStart)
	for size := claimsPage; rated; size *= 4 {
		var oldest event.Event
		n := 0
		f := ledger.Filter{Kinds: []event.Kind{event.KindClaimed}, Until: v.Since, Limit: size, Last: true}
		for e, err := range v.tx.Events(ctx, f) {
			if err != nil {
				return err
			}
			if n++; n == 1 {
				oldest = e
			}
		}
		if n == 0 {
			return nil
		}
		least, most, err := v.starts(ctx, oldest, jobs)
		if err != nil {
			return err
		}
		if n < size || sameStarts(least, most, event.Micros(oldest.At), event.Micros(v.last.At)) {
			v.fold.Limits = least
			return nil
		}
	}
	return nil
}

// starts returns the limits after the event since, if the claims before the oldest one had used nothing of
// the rates, and if they had used the most that these permit.
func (v *verifier) starts(ctx context.Context, oldest event.Event, jobs map[int64]jobOfStart) (least,
	most limit.Set, err error) {
	if least, err = limit.AsOf(ctx, v.tx, oldest.Pos-1); err != nil {
		return nil, nil, err
	}
	most = least.Clone()
	for queue, l := range most {
		most[queue] = l.UsedUp(event.Micros(oldest.At))
	}
	f := ledger.Filter{Kinds: []event.Kind{event.KindQueueLimited, event.KindClaimed}, After: oldest.Pos - 1,
		Until: v.Since}
	for e, err := range v.tx.Events(ctx, f) {
		if err != nil {
			return nil, nil, err
		}
		if e.Kind() == event.KindQueueLimited {
			if err := errors.Join(least.Add(e), most.Add(e)); err != nil {
				return nil, nil, err
			}
			continue
		}
		of, known := jobs[e.N]
		if !known {
			j, _, err := projection.Get(ctx, v.tx, e.Job)
			if err != nil && !errors.Is(err, ledger.ErrDamaged) {
				return nil, nil, err
			}
			of = jobOfStart{j.Queue, j.Group}
			jobs[e.N] = of
		}
		if l, ok := most[of.queue]; ok && l.GroupRate(of.group).N > 0 {
			if _, began := least[of.queue].GroupUsed[of.group]; !began {
				most[of.queue] = l.GroupUsedUp(of.group, event.Micros(oldest.At))
			}
		}
		least.Start(of.queue, of.group, e.At)
		most.Start(of.queue, of.group, e.At)
	}
	return least, most, nil
}

// sameStarts reports whether the rates of both permit the same starts from a time on, and also those of
// groups that started nothing since oldest. Times are in microseconds.
func sameStarts(least, most limit.Set, oldest, from int64) bool {
	for queue, l := range least {
		m := most[queue]
		if max(l.UsedUntil, from) != max(m.UsedUntil, from) || oldest+l.LongestGroupUse() > from {
			return false
		}
		for name, used := range m.GroupUsed {
			if max(l.GroupUsed[name], from) != max(used, from) {
				return false
			}
		}
	}
	return true
}
