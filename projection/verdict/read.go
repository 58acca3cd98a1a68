package verdict

import (
	"cmp"
	"context"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/follow"
	"jobledger/projection/inbox"
	"jobledger/projection/schedules"
)

// ReadRecent reads what each queue did in the day before a moment, of the newest events.
func ReadRecent(ctx context.Context, tx *ledger.Tx, m projection.Moment, most int64) (*Recent, error) {
	tail, err := tx.Tail(ctx)
	if err != nil {
		return nil, err
	}
	tail = min(tail, m.Pos)
	r, pos, err := Begin(ctx, tx, m.At, tail, most)
	if err != nil {
		return nil, err
	}
	moves := follow.Transitions{Pos: pos}
	var failed error
	err = moves.Read(ctx, tx, tail, Feed(ctx, tx, r, &failed))
	return r, cmp.Or(err, failed)
}

// Begin returns a Recent that is to be fed with the transitions after pos: those of the day before a
// moment, and so many at most before tail.
func Begin(ctx context.Context, tx *ledger.Tx, at time.Time, tail, most int64) (r *Recent,
	pos int64, err error) {
	from, err := tx.PosAt(ctx, at.Add(-Reach).Truncate(time.Hour))
	if err != nil {
		return nil, 0, err
	}
	horizon, err := projection.Horizon(ctx, tx)
	if err != nil {
		return nil, 0, err
	}
	pos = max(from, horizon, tail-most)
	first, _, err := projection.TimeOfEvent(ctx, tx, pos+1)
	return &Recent{Since: event.FromMicros(first), Part: pos > from}, pos, err
}

// Feed returns what feeds r with transitions; it sets err where a worker cannot be read.
func Feed(ctx context.Context, tx *ledger.Tx, r *Recent, err *error) func(*follow.Transition) {
	versions := make(map[int64]string) // by the worker's number
	return func(t *follow.Transition) {
		version, known := versions[t.Worker]
		if !known && t.Worker != 0 && *err == nil {
			var w event.Worker
			w, *err = tx.WorkerOf(ctx, t.Worker)
			version = w.Version
			versions[t.Worker] = version
		}
		r.Add(t, version)
	}
}

// ReadRest reads what is of no queue and of no worker: the schedules of m, and the inbox, which has no past.
func (f *Facts) ReadRest(ctx context.Context, tx *ledger.Tx, m projection.Moment) (err error) {
	if f.Schedules, err = readTimetables(ctx, tx, m); err != nil || !m.IsNow() {
		return err
	}
	if f.Inbox, err = inbox.Count(ctx, tx); err != nil || f.Inbox.Refused == 0 {
		return err
	}
	first, err := inbox.AllRefused(ctx, tx, 0, 1)
	if len(first) > 0 {
		f.Refused = first[0]
	}
	return err
}

// readTimetables returns the schedules of m, and what became of their last ticks.
func readTimetables(ctx context.Context, tx *ledger.Tx, m projection.Moment) (all []Timetable,
	err error) {
	list, err := schedules.At(ctx, tx, m.Pos)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var ns []int64
	for _, s := range list {
		all = append(all, Timetable{Schedule: s})
		if s.LastJob != 0 {
			ns = append(ns, s.LastJob)
		}
	}
	last, err := projection.JobsAt(ctx, tx, ns, m)
	if err != nil {
		return nil, err
	}
	after, err := tx.PosAt(ctx, m.At.Add(-Reach))
	if err != nil {
		return nil, err
	}
	skipped := ledger.Filter{Kinds: []event.Kind{event.KindScheduleSkipped}, After: after, Until: m.Pos}
	for e, err := range tx.Events(ctx, skipped) {
		if err != nil {
			return nil, err
		}
		b, _ := e.Body.(*event.ScheduleSkipped)
		for i := range all {
			if t := &all[i]; t.Spec.Name == b.Name && e.Pos > t.LastJob {
				if t.Skipped == 0 {
					t.Since = e.At
				}
				t.Skipped += b.Count
			}
		}
	}
	for i := range all {
		all[i].Last = last[all[i].LastJob]
	}
	return all, nil
}
