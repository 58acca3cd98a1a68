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
	"jobledger/projection/limit"
)

// Limited is the limits of a queue, and what they bind.
type Limited struct {
	limit.Limit
	Live   int64      // jobs that are claimed or running
	Ready  int64      // jobs that could be claimed but for the limits, or could be claimed
	Groups limit.Live // Live by group
}

// Limits returns the queues that have limits at now, by name.
func Limits(ctx context.Context, tx *ledger.Tx, now time.Time) (found []Limited, err error) {
	all, err := limit.All(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if !l.Active() {
			continue
		}
		s := Limited{Limit: l}
		live, err := limit.CountLive(ctx, tx, l.Queue)
		if err != nil {
			return nil, err
		}
		s.Live, s.Groups = live.Total(), live
		if s.Ready, err = CountReady(ctx, tx, l.Queue, now); err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

// Groups returns the groups of a queue with queued jobs or live claims, by name, and the limits of the queue.
func Groups(ctx context.Context, tx *ledger.Tx, queue string) (found []group.Waiting, l limit.Limit,
	err error) {
	live, err := limit.CountLive(ctx, tx, queue)
	if err != nil {
		return nil, l, err
	}
	if found, err = group.OfQueue(ctx, tx, queue, live); err != nil {
		return nil, l, err
	}
	l, err = limit.Of(ctx, tx, queue)
	return bounded(found, l), l, err
}

func bounded(found []group.Waiting, l limit.Limit) []group.Waiting {
	for i := range found {
		found[i].Bound = l.GroupBound(found[i].Group)
	}
	return found
}

// GroupsAsOf is Groups as of m. It costs the jobs that were open then; when a group may start its next job is
// not known.
func GroupsAsOf(ctx context.Context, tx *ledger.Tx, queue string, m projection.Moment) (found []group.Waiting,
	l limit.Limit, err error) {
	open, err := projection.OpenJobsAsOf(ctx, tx, m)
	if err != nil {
		return nil, l, err
	}
	limits, err := limit.AsOf(ctx, tx, m.Pos)
	if err != nil {
		return nil, l, err
	}
	byName := make(map[string]group.Waiting)
	for _, j := range open {
		if j.Queue != queue || j.Group == "" || j.State != event.Queued && !j.State.Held() {
			continue
		}
		w := byName[j.Group]
		if w.Group = j.Group; j.State.Held() {
			w.Live++
		} else {
			w.Queued++
		}
		byName[j.Group] = w
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		found = append(found, byName[name])
	}
	return bounded(found, limits[queue]), limits[queue], nil
}

// LimitsAsOf returns the queues that had limits at m, by name. It costs the jobs that were open then.
func LimitsAsOf(ctx context.Context, tx *ledger.Tx, m projection.Moment) (found []Limited, err error) {
	set, err := limit.AsOf(ctx, tx, m.Pos)
	if err != nil {
		return nil, err
	}
	open, err := projection.OpenJobsAsOf(ctx, tx, m)
	if err != nil {
		return nil, err
	}
	for _, l := range set.List() {
		if !l.Active() {
			continue
		}
		s := Limited{Limit: l, Groups: make(limit.Live)}
		for _, j := range holders(open, l.Queue) {
			s.Live++
			s.Groups[j.Group]++
		}
		for _, j := range open {
			if j.Queue == l.Queue && j.State == event.Queued && !j.RunAt.After(m.At) {
				s.Ready++
			}
		}
		found = append(found, s)
	}
	return found, nil
}
