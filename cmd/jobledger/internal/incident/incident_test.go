package incident

import (
	"encoding/xml"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/nighttest"
	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/follow"
	"jobledger/projection/query"
)

// badNight returns a ledger with the history of testdata/history/bad-night.jsonl.
func badNight(t *testing.T) *ledger.Store {
	t.Helper()
	store := ledgertest.Open(t)
	nighttest.ImportInto(t, &commands.Service{Store: store})
	return store
}

func TestInvestigateBadNight(t *testing.T) {
	store := badNight(t)
	w := export.Window{
		From: time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 3, 15, 4, 0, 0, 0, time.UTC),
	}
	err := store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		if w.After, err = tx.PosAt(t.Context(), w.From.Add(-1)); err == nil {
			w.Until, err = tx.PosAt(t.Context(), w.To)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Investigate(t.Context(), store, w, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Verified.Findings) > 0 {
		t.Errorf("verify: %+v", r.Verified.Findings)
	}
	if r.Events != w.Until-w.After {
		t.Errorf("%d events in a window of %d", r.Events, w.Until-w.After)
	}
	if r.Activity.Reclaimed != int64(len(r.Taken)) || r.Activity.Refused != int64(len(r.Refused)) ||
		len(r.Taken) == 0 {
		t.Errorf("%+v, but %d reclaims and %d refused writes", r.Activity, len(r.Taken), len(r.Refused))
	}
	jobs, attempts := 0, int64(0)
	names := make(map[string]bool)
	for _, l := range r.LostWorkers {
		names[l.Worker.Name] = true
		jobs += len(l.Jobs)
		if l.Jobs[0].At.Before(l.LeaseEnd) || l.LeaseEnd.Before(l.LastHeartbeat) {
			t.Errorf("lost worker %+v", *l)
		}
	}
	if jobs != len(r.Taken) || !names["charlie-render"] {
		t.Errorf("%d jobs lost by %v, %d reclaims", jobs, names, len(r.Taken))
	}
	for _, g := range r.Failures.List {
		attempts += g.Attempts
	}
	if attempts != r.Activity.Failed+r.Activity.Reclaimed {
		t.Errorf("%d failed attempts in groups, activity %+v", attempts, r.Activity)
	}
	if n := len(r.Depth.Points); n != 241 {
		t.Errorf("%d points in four hours, want one a minute", n)
	}
	for i, e := range r.Timeline {
		if e.Text == "" || i > 0 && e.First.Before(r.Timeline[i-1].First) {
			t.Errorf("timeline entry %d: %+v", i, *e)
		}
	}

	var report, chart strings.Builder
	if err := r.WriteMarkdown(&report); err != nil {
		t.Error(err)
	}
	if err := r.Depth.WriteSVG(&chart); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"# Incident of 2026-03-15\n", "`charlie-render`", "\nYes: "} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if err := xml.Unmarshal([]byte(chart.String()), new(struct{})); err != nil {
		t.Errorf("the chart: %v", err)
	}
}

// The depth of a window must equal the one computed from all events, and its events and jobs must verify.
func TestInvestigateFromTheMiddle(t *testing.T) {
	store := badNight(t)
	var tail int64
	at := func(pos int64) (at time.Time) {
		for line, err := range store.Lines(t.Context(), ledger.Filter{After: pos - 1, Until: pos}, false) {
			if err != nil {
				t.Fatal(err)
			}
			at = line.At
		}
		return at
	}
	err := store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		tail, err = tx.Tail(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		w := export.Window{After: random.Int64N(tail - 1)}
		w.Until = w.After + 1 + random.Int64N(min(1500, tail-w.After))
		w.From, w.To = at(w.After+1), at(w.Until)
		r, err := Investigate(t.Context(), store, w, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		points, peaks := depthOf(t, store, w, r.Depth.From, r.Depth.Step)
		if !reflect.DeepEqual(r.Depth.Points, points) || !reflect.DeepEqual(r.Depth.Peaks, peaks) {
			t.Errorf("events %d to %d: depth %+v, want %+v and %+v", w.After+1, w.Until, r.Depth, points, peaks)
		}
		v := r.Verified
		if len(v.Findings) > 0 || v.Since != w.After || v.Until != w.Until || v.Events != r.Events {
			t.Errorf("events %d to %d: verified %+v", w.After+1, w.Until, v)
		}
	}
}

// depthOf counts the depth event by event from the first one on: the points from first on, and the peaks of
// w.
func depthOf(t *testing.T, store *ledger.Store, w export.Window, first time.Time, step time.Duration) (
	points []query.DepthRow, peaks []query.Peak) {
	t.Helper()
	type open struct {
		queue string
		state event.State
		due   int64
	}
	jobs := make(map[int64]open)
	peakOf := make(map[string]*query.Peak)
	mark := func(queue string, at time.Time) {
		p := query.Peak{Queue: queue}
		for _, j := range jobs {
			if j.queue == queue && j.state == event.Queued {
				p.Queued++
			}
			if j.queue == queue && j.state.Held() {
				p.Held++
			}
		}
		if peakOf[queue] == nil {
			peakOf[queue] = &query.Peak{Queue: queue}
		}
		if was := peakOf[queue]; p.Queued > was.Queued {
			was.Queued, was.QueuedAt = p.Queued, at
		}
		if was := peakOf[queue]; p.Held > was.Held {
			was.Held, was.HeldAt = p.Held, at
		}
	}
	point := func(at time.Time) {
		row := query.DepthRow{At: at}
		for _, j := range jobs {
			switch {
			case j.state.Held():
				row.Held++
			case j.state == event.Queued && j.due > event.Micros(at):
				row.Later++
			case j.state == event.Queued:
				row.Ready++
			}
		}
		points = append(points, row)
	}
	all := export.Window{Until: w.Until}
	next, begun := first, w.After == 0
	err := export.EachEvent(t.Context(), store, all, nil, func(e event.Event, queue string) error {
		for ; next.Before(e.At) && !next.After(w.To); next = next.Add(step) {
			point(next)
		}
		if e.Pos > w.After && !begun {
			begun = true
			for _, j := range jobs {
				mark(j.queue, w.From)
			}
		}
		if e.Seq > 0 {
			j := jobs[e.N]
			j.queue, j.state = queue, e.To
			if due := follow.DueOf(e); due > 0 {
				j.due = due
			}
			jobs[e.N] = j
			if e.Pos > w.After {
				mark(queue, e.At)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for ; !next.After(w.To); next = next.Add(step) {
		point(next)
	}
	if len(points) == 1 {
		points = append(points, points[0])
	}
	for _, name := range slices.Sorted(maps.Keys(peakOf)) {
		if p := peakOf[name]; p.Queued+p.Held > 0 {
			peaks = append(peaks, *p)
		}
	}
	return points, peaks
}

func TestReportQuotesText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "cli:ada@desk": "`cli:ada@desk`", "a|b`c`": "`a\\|b'c'`", "x\n## y\x1b[31m": "`x\\n## y\\x1b[31m`",
		" ` ": "`'`",
	} {
		if got := quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
