package status

import (
	"context"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/group"
	"jobledger/projection/internal/table"
	"jobledger/projection/limit"
)

// Limited is the limits of a queue, and what they bind.
type Limited struct {
	limit.Limit
	Live   int64      // jobs that are claimed or running
	Ready  int64      // jobs that could be claimed but for the limits, or could be claimed
	Groups limit.Live // Live by group
}

// Limits returns the queues that had limits at m, by name. For a past moment its cost grows with the jobs
// that were open then; how far their rates are used up is not known.
func Limits(ctx context.Context, tx *ledger.Tx, m projection.Moment) (found []Limited, err error) {
	l, err := lookAt(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	set, err := l.limits(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, of := range set {
		if !of.Active() {
			continue
		}
		s, err := l.limited(ctx, tx, of)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

// LimitsOf is Limits of one queue, even if it has none.
func LimitsOf(ctx context.Context, tx *ledger.Tx, queue string, m projection.Moment) (s Limited, err error) {
	l, err := lookAt(ctx, tx, m)
	if err != nil {
		return s, err
	}
	of, err := l.limit(ctx, tx, queue)
	if err != nil {
		return s, err
	}
	return l.limited(ctx, tx, of)
}

// limited is what of binds.
func (l *look) limited(ctx context.Context, tx *ledger.Tx, of limit.Limit) (s Limited, err error) {
	s.Limit = of
	s.Groups, s.Ready, err = l.slots(ctx, tx, of.Queue)
	s.Live = s.Groups.Total()
	return s, err
}

// Groups returns the groups of a queue with queued jobs or live claims at m, by name, and the limits of the
// queue. For a past moment its cost grows with the jobs that were open then; when a group may start its next
// job is not known.
func Groups(ctx context.Context, tx *ledger.Tx, queue string, m projection.Moment) (found []group.Waiting,
	of limit.Limit, err error) {
	l, err := lookAt(ctx, tx, m)
	if err != nil {
		return nil, of, err
	}
	live, _, err := l.slots(ctx, tx, queue)
	if err == nil && m.IsNow() {
		found, err = group.OfQueue(ctx, tx, queue, live)
	} else if err == nil {
		found = l.groups(queue, live)
	}
	if err == nil {
		of, err = l.limit(ctx, tx, queue)
	}
	for i := range found {
		found[i].Bound = of.GroupBound(found[i].Group)
	}
	return found, of, err
}

// groups is group.OfQueue of a moment of the past.
func (l *look) groups(queue string, live limit.Live) (found []group.Waiting) {
	queued := make(map[string]int64)
	for _, j := range l.open {
		if j.Queue == queue && j.State == event.Queued {
			queued[j.Group]++
		}
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(queued)), maps.Keys(live))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name != "" {
			found = append(found, group.Waiting{Group: name, Queued: queued[name], Live: live[name]})
		}
	}
	return found
}

// limits returns the limits that queues had, by their names.
func (l *look) limits(ctx context.Context, tx *ledger.Tx) ([]limit.Limit, error) {
	if l.at.IsNow() {
		return limit.All(ctx, tx)
	}
	set, err := limit.AsOf(ctx, tx, l.at.Pos)
	return set.List(), err
}

// limit returns the limits of one queue; a Limit that bounds nothing if it had none.
func (l *look) limit(ctx context.Context, tx *ledger.Tx, queue string) (limit.Limit, error) {
	if l.at.IsNow() {
		return limit.Of(ctx, tx, queue)
	}
	set, err := limit.AsOf(ctx, tx, l.at.Pos)
	of := set[queue]
	of.Queue = queue
	return of, err
}

// slots returns the live claims of a queue by group, and how many of its jobs are ready.
func (l *look) slots(ctx context.Context, tx *ledger.Tx, queue string) (live limit.Live, ready int64,
	err error) {
	if l.at.IsNow() {
		if live, err = limit.CountLive(ctx, tx, queue); err == nil {
			ready, err = CountReady(ctx, tx, queue, l.at.At)
		}
		return live, ready, err
	}
	live = make(limit.Live)
	for _, j := range l.open {
		switch {
		case j.Queue != queue:
		case j.State.Held():
			live[j.Group]++
		case j.State == event.Queued && !j.RunAt.After(l.at.At):
			ready++
		}
	}
	return live, ready, nil
}

const firstWithRoom = `SELECT coalesce(min(run_at), 0) FROM group_heads
WHERE queue = (SELECT n FROM names WHERE name = ?) AND eligible_at <= ?`

// FirstWithRoom returns since when the first ready job of a queue waits whose group may start another one;
// zero: there is none. Jobs without a group are left out.
func FirstWithRoom(ctx context.Context, tx *ledger.Tx, m projection.Moment, queue string) (first time.Time,
	err error) {
	if m.IsNow() {
		var at int64
		err = table.ScanOne(ctx, tx, firstWithRoom, []any{&at}, queue, event.Micros(m.At))
		return event.FromMicros(at), err
	}
	l, err := lookAt(ctx, tx, m)
	if err != nil {
		return first, err
	}
	live, _, err := l.slots(ctx, tx, queue)
	if err != nil {
		return first, err
	}
	of, err := l.limit(ctx, tx, queue)
	for _, j := range l.open {
		if j.Queue == queue && j.State == event.Queued && !j.RunAt.After(m.At) && j.Group != "" &&
			!of.GroupFull(j.Group, live[j.Group]) {
			first = earliest(first, j.RunAt)
		}
	}
	return first, err
}
