package query_test

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/keyframe"
	"jobledger/projection/query"
)

// naive is how many jobs each queue had after the events before a time, as of another.
func naive(t *testing.T, tx *ledger.Tx, until int64, now time.Time) map[string]query.DepthRow {
	t.Helper()
	jobs := make(map[int64]projection.Job)
	eachEvent(t, tx, func(e event.Event) {
		if e.Pos <= until && e.N > 0 {
			j, err := projection.Evolve(jobs[e.N], e)
			if err != nil {
				t.Fatal(err)
			}
			jobs[e.N] = j
		}
	})
	rows := make(map[string]query.DepthRow)
	for _, j := range jobs {
		r := rows[j.Queue]
		r.Queue = j.Queue
		switch {
		case j.State.Held():
			r.Held++
		case j.State == event.Queued && j.RunAt.After(now):
			r.Later++
		case j.State == event.Queued:
			r.Ready++
		}
		rows[j.Queue] = r
	}
	return rows
}

// The depth at each moment is what a fold of all events up to there says, whether it was counted from event
// to event or from the keyframe before each moment, by queue and merged; and that of steps at their ends.
func TestDepthEqualsTheFold(t *testing.T) {
	s := busy(t, ledgertest.Size(700, 500, 250))
	ctx := t.Context()
	for _, keyframes := range []bool{false, true} {
		if keyframes {
			if _, err := keyframe.Extend(ctx, s.Store, 50); err != nil {
				t.Fatal(err)
			}
		}
		err := s.Store.Read(ctx, func(tx *ledger.Tx) error {
			tail, err := tx.Tail(ctx)
			if err != nil {
				return err
			}
			for _, window := range [][2]int64{{0, math.MaxInt64}, {tail / 3, tail / 2}, {tail / 2, tail/2 + 1}} {
				var span query.Span
				if span.From, err = projection.AtPos(ctx, tx, window[0]); err != nil {
					return err
				}
				if span.To, err = projection.AtPos(ctx, tx, window[1]); err != nil {
					return err
				}
				for _, points := range []int{1, 7} {
					if err := checkMoments(t, tx, span, points); err != nil {
						return err
					}
				}
				if err := checkSteps(t, tx, span); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkMoments compares the depth at moments of span.
func checkMoments(t *testing.T, tx *ledger.Tx, span query.Span, points int) error {
	t.Helper()
	var moments []time.Time
	for i := range points {
		moments = append(moments, span.From.At.Add(span.Length()/time.Duration(points)*time.Duration(i+1)))
	}
	moments[points-1] = span.To.At
	got := make(map[string]query.DepthRow)
	for _, queue := range []string{"mail", "render", "nothing", ""} {
		q := query.Depth{Span: span, Moments: moments, Merged: queue == ""}
		q.Queue = queue
		rows, err := q.Read(t.Context(), tx)
		if err != nil {
			return err
		}
		for _, r := range rows {
			got[fmt.Sprint(queue, r.At)] = r
		}
	}
	for i, at := range moments {
		m := span.To
		if i < points-1 {
			var err error
			if m, err = projection.AtTime(t.Context(), tx, at); err != nil {
				return err
			}
		}
		want := naive(t, tx, m.Pos, at)
		all := query.DepthRow{At: at}
		for name := range maps.Keys(want) {
			r := want[name]
			r.At = at
			if one := got[fmt.Sprint(name, at)]; one != r && (r.Queued()+r.Held > 0 || one.Queued()+one.Held > 0) {
				t.Errorf("events %d to %d, moment %d: %+v, want %+v", span.From.Pos, span.To.Pos, i, one, r)
			}
			all.Ready, all.Later, all.Held = all.Ready+r.Ready, all.Later+r.Later, all.Held+r.Held
		}
		if one := got[fmt.Sprint("", at)]; one != all {
			t.Errorf("events %d to %d, moment %d, merged: %+v, want %+v", span.From.Pos, span.To.Pos, i, one, all)
		}
	}
	return nil
}

// checkSteps compares the depth at the ends of the steps of span, and the last one of the series and the
// peaks.
func checkSteps(t *testing.T, tx *ledger.Tx, span query.Span) error {
	t.Helper()
	const step = 10 * time.Second
	rows, err := query.Depth{Span: span, Step: step}.Read(t.Context(), tx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		end := r.At.Add(step)
		m, err := projection.AtTime(t.Context(), tx, end.Add(-time.Microsecond))
		if err != nil {
			return err
		}
		want := naive(t, tx, min(m.Pos, span.To.Pos), end)[r.Queue]
		want.At, want.Queue = r.At, r.Queue
		if r != want {
			t.Errorf("events %d to %d: the step at %s is %+v, want %+v", span.From.Pos, span.To.Pos, r.At, r, want)
		}
	}
	if len(rows) == 0 {
		t.Errorf("events %d to %d: no step", span.From.Pos, span.To.Pos)
	}
	course, err := query.Series{Span: span, Step: time.Second}.Read(t.Context(), tx)
	if span.From.Pos == 0 {
		if span.From, err = projection.AtPos(t.Context(), tx, 1); err != nil {
			return err
		}
		course, err = query.Series{Span: span, Step: time.Second}.Read(t.Context(), tx)
	}
	if err != nil {
		return err
	}
	var last query.DepthRow
	for _, r := range naive(t, tx, span.To.Pos, span.To.At) {
		last.Ready, last.Later, last.Held = last.Ready+r.Ready, last.Later+r.Later, last.Held+r.Held
	}
	i := len(course.Queued) - 1
	got := query.DepthRow{Ready: course.Ready[i], Later: course.Later[i], Held: course.Held[i]}
	if got != last {
		t.Errorf("the series ends with %+v, want %+v", got, last)
	}
	return checkPeaks(t, tx, span)
}

// checkPeaks compares the peaks of span with the depth after each event.
func checkPeaks(t *testing.T, tx *ledger.Tx, span query.Span) error {
	t.Helper()
	got, err := query.Peaks{Span: span}.Read(t.Context(), tx)
	want := make(map[string]query.Peak)
	for pos := span.From.Pos; pos <= span.To.Pos; pos++ {
		m, err := projection.AtPos(t.Context(), tx, pos)
		if err != nil {
			return err
		}
		for name, r := range naive(t, tx, pos, m.At) {
			p := want[name]
			p.Queue = name
			if r.Queued() > p.Queued {
				p.Queued, p.QueuedAt = r.Queued(), m.At
			}
			if r.Held > p.Held {
				p.Held, p.HeldAt = r.Held, m.At
			}
			want[name] = p
		}
	}
	all := slices.SortedFunc(maps.Values(want), func(a, b query.Peak) int {
		return strings.Compare(a.Queue, b.Queue)
	})
	all = slices.DeleteFunc(all, func(p query.Peak) bool { return p.Queued+p.Held == 0 })
	if !reflect.DeepEqual(got, all) {
		t.Errorf("events %d to %d: the peaks are %+v, want %+v", span.From.Pos, span.To.Pos, got, all)
	}
	return err
}
