package limit

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Columns are those of the table limits. A row has the content of the last queue_limited of its queue, or of
// one group of it.
const Columns = "queue, grp, running, per_group, rate, rate_per, burst, used_until, " +
	"group_rate, group_rate_per, group_burst, ageing, since, actor, reason"

var put = ledger.NewUpsert("limits", "queue, grp",
	ledger.ColumnTypes{"grp": ledger.TextColumn, "reason": ledger.TextColumn},
	"queue", "grp", "running", "per_group", "rate", "rate_per", "burst", "used_until",
	"group_rate", "group_rate_per", "group_burst", "ageing", "since", "actor", "reason")

// Row is a row of the table limits: int64, string or nil in each place, in the order of Columns.
type Row [15]any

// RowsOf returns l as rows: that of the queue, if its limits were ever set, and those of its exceptions. It
// adds names that are missing to the dictionary.
func RowsOf(ctx context.Context, tx *ledger.Tx, l Limit) (rows []Row, err error) {
	queue, err := tx.Name(ctx, l.Queue)
	if err != nil {
		return nil, err
	}
	add := func(s Spec, used int64, x Exception) error {
		actor, err := tx.Name(ctx, x.Actor)
		rows = append(rows, Row{queue, x.Group, table.Number(int64(s.Running)), table.Number(int64(s.PerGroup)),
			table.Number(int64(s.Rate.N)), table.Number(s.Rate.Per.Microseconds()),
			table.Number(int64(s.Rate.Burst)), table.Number(used),
			table.Number(int64(s.PerGroupRate.N)), table.Number(s.PerGroupRate.Per.Microseconds()),
			table.Number(int64(s.PerGroupRate.Burst)), table.Number(s.Ageing.Microseconds()), event.Micros(x.Since),
			actor, table.Text(x.Reason)})
		return err
	}
	if !l.Since.IsZero() {
		err = add(l.Spec, l.UsedUntil, Exception{Since: l.Since, Actor: l.Actor, Reason: l.Reason})
	}
	for _, name := range slices.Sorted(maps.Keys(l.Exceptions)) {
		if x := l.Exceptions[name]; err == nil {
			err = add(Spec{Running: x.Running, Rate: x.Rate}, 0, x)
		}
	}
	return rows, err
}

// Put brings the rows of a queue from before, which may be the zero Limit, to after. The caller drops the
// cache of claims.
func Put(ctx context.Context, tx *ledger.Tx, before, after Limit) error {
	before.Queue = after.Queue
	stored, err := RowsOf(ctx, tx, before)
	if err != nil {
		return err
	}
	rows, err := RowsOf(ctx, tx, after)
	if err != nil {
		return err
	}
	known := make(map[Row]bool, len(stored))
	for _, r := range stored {
		known[r] = true
	}
	for _, r := range rows {
		if known[r] {
			continue
		}
		if err := tx.Put(put, r[:]...); err != nil {
			return err
		}
	}
	return nil
}

const (
	putUsed = `UPDATE limits SET used_until = ?
WHERE grp = '' AND queue = (SELECT n FROM names WHERE name = ?)`
	selectUsed = `SELECT coalesce(max(used_until), 0) FROM limits
WHERE grp = '' AND queue = (SELECT n FROM names WHERE name = ?)`
)

// Start counts the claim of a job of g's queue and of a group, "" for none, at a time in microseconds, also
// in the rows.
func (g *Gate) Start(ctx context.Context, tx *ledger.Tx, group string, at int64) error {
	if r := g.GroupRate(group); r.N > 0 {
		used, err := g.groupUsed(ctx, tx, group)
		if err != nil {
			return err
		}
		g.setUsed(group, r.start(used, at))
		if err := PutGroupUsed(ctx, tx, g.Queue, group, r.start(used, at)); err != nil {
			return err
		}
	}
	if g.Rate.N == 0 {
		return nil
	}
	if err := g.refresh(ctx, tx); err != nil {
		return err
	}
	g.Limit.Start(at)
	_, err := tx.Exec(putUsed, g.UsedUntil, g.Queue)
	return err
}

const selectLimits = `SELECT n.name, l.grp, l.running, l.per_group, l.since, a.name, coalesce(l.reason, ''),
    coalesce(l.rate, 0), coalesce(l.rate_per, 0), coalesce(l.burst, 0), coalesce(l.used_until, 0),
    coalesce(l.group_rate, 0), coalesce(l.group_rate_per, 0), coalesce(l.group_burst, 0),
    coalesce(l.ageing, 0)
FROM limits l JOIN names n ON n.n = l.queue JOIN names a ON a.n = l.actor`

// Of returns the limits of a queue; a Limit that bounds nothing if there are none.
func Of(ctx context.Context, tx *ledger.Tx, queue string) (Limit, error) {
	found, err := query(ctx, tx, selectLimits+` WHERE l.queue = (SELECT n FROM names WHERE name = ?)`, queue)
	if err != nil || len(found) == 0 {
		return Limit{Queue: queue}, err
	}
	return found[0], nil
}

// All returns the limits of every queue that ever had any, by name.
func All(ctx context.Context, tx *ledger.Tx) ([]Limit, error) {
	return query(ctx, tx, selectLimits+` ORDER BY n.name, l.grp`)
}

// query reads rows, sorted by queue.
func query(ctx context.Context, tx *ledger.Tx, text string, args ...any) (found []Limit, err error) {
	rows, err := tx.QueryState(ctx, text, args...)
	var l Limit
	var name string
	var running, perGroup sql.NullInt64
	var since, per, groupPer, ageing int64
	into := []any{&l.Queue, &name, &running, &perGroup, &since, &l.Actor, &l.Reason, &l.Rate.N, &per,
		&l.Rate.Burst, &l.UsedUntil, &l.PerGroupRate.N, &groupPer, &l.PerGroupRate.Burst, &ageing}
	err = table.Each(rows, err, into, func() error {
		l.Running, l.PerGroup, l.Since = int(running.Int64), int(perGroup.Int64), event.FromMicros(since)
		l.Rate.Per = time.Duration(per) * time.Microsecond
		l.Ageing = time.Duration(ageing) * time.Microsecond
		l.PerGroupRate.Per = time.Duration(groupPer) * time.Microsecond
		if len(found) == 0 || found[len(found)-1].Queue != l.Queue {
			found = append(found, Limit{Queue: l.Queue})
		}
		of := &found[len(found)-1]
		if name == "" {
			exceptions := of.Exceptions
			*of = l
			of.Exceptions = exceptions
			return nil
		}
		if of.Exceptions == nil {
			of.Exceptions = make(map[string]Exception)
		}
		of.Exceptions[name] = Exception{GroupSpec{l.Running, l.Rate}, name, l.Since, l.Actor, l.Reason}
		return nil
	})
	return found, err
}

// AsOf returns the limits that were set by the event at pos. It folds their events, which are few.
func AsOf(ctx context.Context, tx *ledger.Tx, pos int64) (Set, error) {
	set := make(Set)
	if pos == 0 {
		return set, nil
	}
	f := ledger.Filter{Kinds: []event.Kind{event.KindQueueLimited}, Until: pos}
	for e, err := range tx.Events(ctx, f) {
		if err == nil {
			err = set.Add(e)
		}
		if err != nil {
			return nil, err
		}
	}
	return set, nil
}
