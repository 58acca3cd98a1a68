package status

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/group"
	"jobledger/projection/internal/lane"
	"jobledger/projection/internal/table"
)

// Both read the index ready.
const (
	aheadInLane  = `SELECT count(*) FROM jobs WHERE lane = ? AND (run_at, id) < (?, ?)`
	readyBetween = `SELECT count(*) FROM jobs WHERE lane >= ? AND lane < ? AND run_at <= ?`
)

// before counts the jobs that will be claimed before j, which is queued: those of its lane, ready or not, and
// the ready ones of its queue with a higher priority.
func (l *look) before(ctx context.Context, tx *ledger.Tx, j projection.Job) (inLane, higher int64,
	err error) {
	if !l.at.IsNow() {
		inLane, higher = l.beforeAmong(j)
		return inLane, higher, nil
	}
	err = table.ScanOne(ctx, tx, aheadInLane, []any{&inLane}, projection.LaneOf(j), event.Micros(j.RunAt),
		string(j.ID))
	if err == nil {
		higher, err = readyUpTo(ctx, tx, j.Queue, lane.Rank(j.Priority), l.at.At)
	}
	return inLane, higher, err
}

// beforeAmong is before of a moment of the past.
func (l *look) beforeAmong(j projection.Job) (inLane, higher int64) {
	lane := projection.LaneOf(j)
	for _, o := range l.open {
		switch {
		case o.State != event.Queued || o.Queue != j.Queue:
		case projection.LaneOf(o) == lane:
			if cmp.Or(o.RunAt.Compare(j.RunAt), strings.Compare(string(o.ID), string(j.ID))) < 0 {
				inLane++
			}
		case o.Priority > j.Priority && !o.RunAt.After(l.at.At):
			higher++
		}
	}
	return inLane, higher
}

// CountReady counts the jobs of a queue that are ready at now.
func CountReady(ctx context.Context, tx *ledger.Tx, queue string, now time.Time) (n int64, err error) {
	return readyUpTo(ctx, tx, queue, "", now)
}

// readyUpTo counts the ready jobs of a queue whose lanes come before a rank; "": all of them.
func readyUpTo(ctx context.Context, tx *ledger.Tx, queue, rank string, now time.Time) (sum int64, err error) {
	for _, bounds := range []func(string) (string, string){lane.Bounds, group.Bounds} {
		from, before := bounds(queue)
		if rank != "" {
			before = from + rank
		}
		var n int64
		if err = table.ScanOne(ctx, tx, readyBetween, []any{&n}, from, before, event.Micros(now)); err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// ReadyLane counts the ready jobs of one queue, priority, version and set of labels.
type ReadyLane struct {
	Queue    string
	Priority int
	Version  string
	Requires []string
	Jobs     int64
	Since    time.Time // the run_at of the one that has waited for longest
}

const readyLanes = `SELECT queue, lane, count(*), min(run_at) FROM jobs
WHERE lane IS NOT NULL AND run_at <= ? GROUP BY queue, lane`

// ReadyLanes returns the lanes with jobs that are ready at now.
func ReadyLanes(ctx context.Context, tx *ledger.Tx, now time.Time) (found []ReadyLane, err error) {
	rows, err := tx.Query(ctx, readyLanes, event.Micros(now))
	seen := make(map[string]int) // by lane
	var l ReadyLane
	var queue, since int64
	var text string
	err = table.Each(rows, err, []any{&queue, &text, &l.Jobs, &since}, func() error {
		if l.Queue, err = tx.NameOf(ctx, queue); err != nil {
			return err
		}
		if base, _, ok := group.Split(text); ok {
			text = group.Plain(base)
		}
		if l.Priority, l.Version, l.Requires, err = lane.Parse(text); err != nil {
			return err
		}
		l.Since = event.FromMicros(since)
		if i, ok := seen[text]; ok { // another group of the lane
			found[i].Jobs += l.Jobs
			if l.Since.Before(found[i].Since) {
				found[i].Since = l.Since
			}
			return nil
		}
		seen[text] = len(found)
		found = append(found, l)
		return nil
	})
	return found, err
}

// ReadyLanesAmong is ReadyLanes of jobs that are not read from the tables: those of a moment.
func ReadyLanesAmong(jobs map[int64]projection.Job, now time.Time) (found []ReadyLane) {
	byLane := make(map[string]*ReadyLane)
	for _, j := range jobs {
		if j.State != event.Queued || j.RunAt.After(now) {
			continue
		}
		j.Group = ""
		lane := projection.LaneOf(j)
		l := byLane[lane]
		if l == nil {
			l = &ReadyLane{Queue: j.Queue, Priority: j.Priority, Version: j.Version, Requires: j.Requires,
				Since: j.RunAt}
			byLane[lane] = l
		}
		if l.Jobs++; j.RunAt.Before(l.Since) {
			l.Since = j.RunAt
		}
	}
	for _, lane := range slices.Sorted(maps.Keys(byLane)) {
		found = append(found, *byLane[lane])
	}
	return found
}
