package audit

import (
	"context"
	"fmt"

	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/audit/differ"
	"jobledger/projection/limit"
)

// limitRows reports the rows of limits that differ.
func (v *verifier) limitRows(ctx context.Context) error {
	differing, err := differ.Limits(ctx, v.tx, v.fold.Limits, v.Since == 0, v.horizon)
	for _, d := range differing {
		of := "queue " + d.Name
		if d.Group != "" {
			of = fmt.Sprintf("group %q of the queue %s", d.Group, d.Name)
		}
		v.find(Finding{Code: FindLimit, Field: d.Field, Detail: of + ": " + d.Detail})
	}
	if err != nil || v.Since > 0 {
		return err
	}
	rates, err := differ.Rates(ctx, v.tx, v.fold.Limits, v.horizon)
	for _, d := range rates {
		v.find(Finding{Code: FindLimit, Field: differ.UsedUntil,
			Detail: fmt.Sprintf("group %q of the queue %s: %s", d.Stored.Group, d.Name, d.Detail)})
	}
	return err
}

// beginLimits restores the limits, what was used of the rates, and, where a queue has any by the end, the
// live claims as they were after the events up to since.
func (v *verifier) beginLimits(ctx context.Context) (err error) {
	if v.fold.Limits, err = limit.AsOf(ctx, v.tx, v.Since); err != nil {
		return err
	}
	if len(v.fold.Limits) == 0 {
		all, err := limit.All(ctx, v.tx)
		if err != nil || len(all) == 0 {
			return err
		}
	}
	if err := v.beginStarts(ctx); err != nil {
		return err
	}
	m, err := projection.AtPos(ctx, v.tx, v.Since)
	if err != nil {
		return err
	}
	open, err := projection.OpenJobsAsOf(ctx, v.tx, m)
	for _, j := range open {
		if j.State.Held() {
			v.fold.CountLive(&j)
		}
	}
	return err
}

// limited checks the claim e of j against the limits in force. So the history proves that they were kept.
func (v *verifier) limited(j *projection.Job, e *event.Event, b *event.Claimed) {
	l, live := v.fold.Limits[j.Queue], v.fold.Live[j.Queue]
	if l.Running > 0 && l.Full(live.Total()) {
		v.at(e, FindOverLimit, "claimed although %d of the queue %s were live, and the limit was %d", live.Total(),
			j.Queue, l.Running)
	}
	if l.GroupFull(j.Group, live[j.Group]) {
		v.at(e, FindOverLimit,
			"claimed although %d of the group %q of the queue %s were live, and the limit was %d",
			live[j.Group], j.Group, j.Queue, l.GroupBound(j.Group))
	}
	if next := l.NextStart(); l.Rate.N > 0 && event.Micros(e.At) < next {
		v.at(e, FindOverLimit, "claimed although the rate of the queue %s let the next job start at %s", j.Queue,
			event.FormatTime(event.FromMicros(next)))
	}
	if next := l.GroupNextStart(j.Group, l.GroupUsed[j.Group]); event.Micros(e.At) < next {
		v.at(e, FindOverLimit,
			"claimed although the rate of the group %q of the queue %s let the next job start at %s", j.Group, j.Queue,
			event.FormatTime(event.FromMicros(next)))
	}
	if b.Limited != l.Active() {
		v.at(e, FindOverLimit, "it says limited %t, but limits of the queue %s in force: %t", b.Limited, j.Queue,
			l.Active())
	}
}
