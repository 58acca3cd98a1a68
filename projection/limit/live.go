package limit

import (
	"context"

	"jobledger/ledger"
	"jobledger/projection/internal/table"
)

// liveGroups searches the live leases, which are few compared with the jobs.
const liveGroups = `SELECT coalesce(j.more ->> 'group', ''), count(*) FROM jobs j
WHERE j.lease_expires_at > 0 AND j.queue = (SELECT n FROM names WHERE name = ?) GROUP BY 1`

// Live is how many jobs of a queue are claimed or running, by group; "": those of no group.
type Live map[string]int64

// Total returns how many there are.
func (l Live) Total() (n int64) {
	for _, live := range l {
		n += live
	}
	return n
}

// CountLive returns the live claims of a queue.
func CountLive(ctx context.Context, tx *ledger.Tx, queue string) (Live, error) {
	rows, err := tx.QueryState(ctx, liveGroups, queue)
	live := make(Live)
	var group string
	var n int64
	err = table.Each(rows, err, []any{&group, &n}, func() error {
		live[group] = n
		return nil
	})
	return live, err
}

// Gate is the limits of a queue as the writer of a ledger keeps them between claims, with the live claims
// where they are known.
type Gate struct {
	Limit
	live  Live // nil: unknown
	total int64
	stale bool             // UsedUntil is no longer known
	used  map[string]int64 // by group, those that are known: until when the starts use up its rate
}

// Note adds a change of the number of live claims of a group.
func (g *Gate) Note(group string, change int64) {
	if g.live != nil {
		g.live[group] += change
		g.total += change
	}
}

// Forget makes the live claims and the starts unknown: other writers have changed them.
func (g *Gate) Forget() { g.live, g.stale, g.used = nil, true, nil }

// refresh reads UsedUntil where it is not known.
func (g *Gate) refresh(ctx context.Context, tx *ledger.Tx) error {
	if !g.stale || g.Rate.N == 0 {
		return nil
	}
	err := table.ScanOne(ctx, tx, selectUsed, []any{&g.UsedUntil}, g.Queue)
	g.stale = err != nil
	return err
}

func (g *Gate) count(ctx context.Context, tx *ledger.Tx) (err error) {
	if g.live == nil {
		g.live, err = CountLive(ctx, tx, g.Queue)
		g.total = g.live.Total()
	}
	return err
}

// Room returns how many more jobs of the queue may start, up to most.
func (g *Gate) Room(ctx context.Context, tx *ledger.Tx, most int) (int, error) {
	if g.Running == 0 {
		return most, nil
	}
	if err := g.count(ctx, tx); err != nil {
		return 0, err
	}
	return min(most, max(0, g.Running-int(g.total))), nil
}

// StartRoom returns how many more jobs of the queue its rate lets start at a time in microseconds, up to
// most.
func (g *Gate) StartRoom(ctx context.Context, tx *ledger.Tx, at int64, most int) (int, error) {
	err := g.refresh(ctx, tx)
	return g.Limit.StartRoom(at, most), err
}

// NextStart returns the time, in microseconds, from which the rate lets the next job start.
func (g *Gate) NextStart(ctx context.Context, tx *ledger.Tx) (int64, error) {
	err := g.refresh(ctx, tx)
	return g.Limit.NextStart(), err
}

// GroupRoom returns how many more jobs of one group may start, up to most.
func (g *Gate) GroupRoom(ctx context.Context, tx *ledger.Tx, group string, most int) (int, error) {
	bound := g.GroupBound(group)
	if bound == 0 {
		return most, nil
	}
	if err := g.count(ctx, tx); err != nil {
		return 0, err
	}
	return min(most, max(0, bound-int(g.live[group]))), nil
}

// GroupStartRoom returns how many more jobs of one group its rate lets start at a time in microseconds, up to
// most.
func (g *Gate) GroupStartRoom(ctx context.Context, tx *ledger.Tx, group string, at int64, most int) (int,
	error) {
	used, err := g.groupUsed(ctx, tx, group)
	return g.GroupRate(group).room(used, at, most), err
}

// GroupNextStart returns the time, in microseconds, from which the rate of a group lets its next job start.
func (g *Gate) GroupNextStart(ctx context.Context, tx *ledger.Tx, group string) (int64, error) {
	used, err := g.groupUsed(ctx, tx, group)
	return g.Limit.GroupNextStart(group, used), err
}

// groupUsed returns until when the starts of a group use up its rate; 0 if it has none.
func (g *Gate) groupUsed(ctx context.Context, tx *ledger.Tx, group string) (int64, error) {
	if g.GroupRate(group).N == 0 {
		return 0, nil
	}
	if used, known := g.used[group]; known {
		return used, nil
	}
	used, err := GroupUsed(ctx, tx, g.Queue, group)
	if err == nil {
		g.setUsed(group, used)
	}
	return used, err
}

func (g *Gate) setUsed(group string, used int64) {
	if g.used == nil {
		g.used = make(map[string]int64)
	}
	g.used[group] = used
}
