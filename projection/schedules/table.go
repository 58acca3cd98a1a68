package schedules

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/table"
)

// columns are those of the table timetable, the name first.
var columns = []string{"name", "next_at", "paused", "since", "actor", "reason", "last_tick", "last_job",
	"spec"}

type row [9]any

var put = ledger.NewUpsert("timetable", "name", ledger.ColumnTypes{"name": ledger.TextColumn,
	"reason": ledger.TextColumn, "spec": ledger.JSONColumn}, columns...)

func rowOf(ctx context.Context, tx *ledger.Tx, s Schedule) (r row, err error) {
	actor, err := tx.Name(ctx, s.Actor)
	if err != nil {
		return r, err
	}
	paused := int64(0)
	if s.Paused {
		paused = 1
	}
	spec, _ := event.AppendStored(nil, &s.Spec)
	return row{s.Spec.Name, table.Moment(s.Next), paused, event.Micros(s.Since), actor, table.Text(s.Reason),
		table.Moment(s.LastTick), table.Number(s.LastJob), string(spec)}, nil
}

// Put makes the row of s equal s.
func Put(ctx context.Context, tx *ledger.Tx, s Schedule) error {
	r, err := rowOf(ctx, tx, s)
	if err != nil {
		return err
	}
	return tx.Put(put, r[:]...)
}

// Remove removes the row of the schedule with this name.
func Remove(tx *ledger.Tx, name string) error {
	_, err := tx.Exec(`DELETE FROM timetable WHERE name = ?`, name)
	return err
}

var selected = `SELECT t.` + strings.Join(columns, ", t.") + ` FROM timetable t`

// Get returns the schedule with this name; the zero Schedule if there is none.
func Get(ctx context.Context, tx *ledger.Tx, name string) (Schedule, error) {
	found, err := query(ctx, tx, selected+` WHERE t.name = ?`, name)
	if err != nil || len(found) == 0 {
		return Schedule{}, err
	}
	return found[0], nil
}

// List returns every schedule, by name.
func List(ctx context.Context, tx *ledger.Tx) ([]Schedule, error) {
	return query(ctx, tx, selected+` ORDER BY t.name`)
}

// Count returns how many schedules there are.
func Count(ctx context.Context, tx *ledger.Tx) (n int64, err error) {
	err = table.ScanOne(ctx, tx, `SELECT count(*) FROM timetable`, []any{&n})
	return n, err
}

// Due returns the schedules whose next tick has come by now, the longest overdue first.
func Due(ctx context.Context, tx *ledger.Tx, now time.Time) ([]Schedule, error) {
	return query(ctx, tx, selected+` WHERE t.next_at <= ? ORDER BY t.next_at, t.name`, event.Micros(now))
}

// NextTick returns the earliest next tick of all schedules; zero if there is none. It reads one small table.
func NextTick(ctx context.Context, tx *ledger.Tx) (time.Time, error) {
	var next sql.NullInt64
	err := table.ScanOne(ctx, tx, `SELECT min(next_at) FROM timetable`, []any{&next})
	return event.FromMicros(next.Int64), err
}

func query(ctx context.Context, tx *ledger.Tx, text string, args ...any) (found []Schedule, err error) {
	rows, err := tx.QueryState(ctx, text, args...)
	var s Schedule
	var name, spec string
	var next, lastTick, lastJob sql.NullInt64
	var since, actor int64
	var reason sql.NullString
	into := []any{&name, &next, &s.Paused, &since, &actor, &reason, &lastTick, &lastJob, &spec}
	err = table.Each(rows, err, into, func() error {
		body, err := event.Decode(event.KindScheduleSet, spec, nil, &event.Worker{})
		if err != nil {
			return fmt.Errorf("schedule %s: %w", name, err)
		}
		s.Spec = *body.(*event.ScheduleSet)
		s.Next, s.LastTick, s.LastJob = event.FromMicros(next.Int64), event.FromMicros(lastTick.Int64),
			lastJob.Int64
		s.Since, s.Reason = event.FromMicros(since), reason.String
		if s.Actor, err = tx.NameOf(ctx, actor); err != nil {
			return fmt.Errorf("schedule %s: %w", name, err)
		}
		found = append(found, s)
		return nil
	})
	return found, err
}

// Fold is schedules by name, as events add up to them.
type Fold map[string]Schedule

// Add takes the next event. One that concerns no schedule changes nothing.
func (f Fold) Add(e event.Event) error {
	name := Of(e.Body)
	if name == "" {
		return nil
	}
	s, err := Evolve(f[name], e)
	if err != nil {
		return err
	}
	if f[name] = s; !s.Exists() {
		delete(f, name)
	}
	return nil
}

// Gaps lets a fold pass over the ticks of jobs that have left the ledger.
type Gaps struct {
	Horizon int64            // the last event that may have left; 0: none has
	last    map[string]int64 // of each schedule, the event before
}

// Pass prepares f for e, the next event, where ticks before it may be missing.
func (g *Gaps) Pass(f Fold, e event.Event) {
	name := Of(e.Body)
	if name == "" || g.Horizon == 0 {
		return
	}
	var tick time.Time
	switch b := e.Body.(type) {
	case *event.Enqueued:
		tick = b.Tick
	case *event.ScheduleSkipped:
		tick = b.From
	}
	if s := f[name]; !tick.IsZero() && s.Exists() && !s.Paused && g.last[name] <= g.Horizon {
		s.Next = tick
		f[name] = s
	}
	if g.last == nil {
		g.last = make(map[string]int64)
	}
	g.last[name] = e.Pos
}

// Sorted returns the schedules by name.
func (f Fold) Sorted() (found []Schedule) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		found = append(found, f[name])
	}
	return found
}

var firstSet = event.SQL(`SELECT coalesce(min(pos), 0) FROM events
WHERE kind = {schedule_set} AND kind > {rareAfter}`)

// AsOf returns the schedules that there were by the event pos. Without any it costs one search in an index;
// else it reads the events that enqueue jobs, from the first schedule on.
func AsOf(ctx context.Context, tx *ledger.Tx, pos int64) (Fold, error) {
	f := make(Fold)
	var first int64
	if err := table.ScanOne(ctx, tx, firstSet, []any{&first}); err != nil || first == 0 || first > pos {
		return f, err
	}
	return f, f.Continue(ctx, tx, first-1, pos)
}

// At returns the schedules of the position of a moment, by name; that of now is math.MaxInt64.
func At(ctx context.Context, tx *ledger.Tx, pos int64) ([]Schedule, error) {
	if pos == math.MaxInt64 {
		return List(ctx, tx)
	}
	f, err := AsOf(ctx, tx, pos)
	return f.Sorted(), err
}

// Continue adds the events after the first of two positions, up to the second.
func (f Fold) Continue(ctx context.Context, tx *ledger.Tx, after, until int64) error {
	if until <= after {
		return nil
	}
	horizon, err := projection.Horizon(ctx, tx)
	if err != nil {
		return err
	}
	gaps := Gaps{Horizon: horizon}
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: Kinds(), After: after, Until: until}) {
		if err == nil {
			gaps.Pass(f, e)
			err = f.Add(e)
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", e.Pos, err)
		}
	}
	return nil
}

// Difference is a defect of a row of the table timetable: the whole row, or one field.
type Difference struct{ Name, Field, Detail string }

// Differences compares the rows with f, in the order of the names.
func (f Fold) Differences(ctx context.Context, tx *ledger.Tx) (found []Difference, err error) {
	stored, err := storedRows(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, s := range f.Sorted() {
		name := s.Spec.Name
		got, ok := stored[name]
		if delete(stored, name); !ok {
			found = append(found, Difference{Name: name, Detail: "it has no row in the table timetable"})
			continue
		}
		want, err := rowOf(ctx, tx, s)
		if err != nil {
			return nil, err
		}
		for i, field := range columns {
			if got[i] != want[i] {
				found = append(found, Difference{name, field, fmt.Sprintf("%s is %v in the table, %v by the events",
					field, shown(got[i]), shown(want[i]))})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		found = append(found, Difference{Name: name,
			Detail: "its row in the table timetable belongs to no schedule that is set"})
	}
	return found, nil
}

func shown(v any) any {
	if v == nil {
		return "null"
	}
	return v
}

func storedRows(ctx context.Context, tx *ledger.Tx) (map[string]row, error) {
	rows, err := tx.Query(ctx, selected)
	stored := make(map[string]row)
	var r row
	var name, spec string
	var reason sql.NullString
	into := []any{&name, &r[1], &r[2], &r[3], &r[4], &reason, &r[6], &r[7], &spec}
	err = table.Each(rows, err, into, func() error {
		r[0], r[5], r[8] = name, table.Text(reason.String), spec
		stored[name] = r
		return nil
	})
	return stored, err
}

// Repair makes the rows equal f and returns how many were not.
func (f Fold) Repair(ctx context.Context, tx *ledger.Tx) (repaired int64, err error) {
	differing, err := f.Differences(ctx, tx)
	if err != nil {
		return 0, err
	}
	for i, d := range differing {
		if i > 0 && d.Name == differing[i-1].Name {
			continue // another column of the same row
		}
		if s, ok := f[d.Name]; ok {
			err = Put(ctx, tx, s)
		} else {
			err = Remove(tx, d.Name)
		}
		if err != nil {
			return repaired, err
		}
		repaired++
	}
	return repaired, nil
}
