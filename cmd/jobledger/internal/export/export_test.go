package export

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/files"
	"jobledger/cmd/jobledger/internal/nighttest"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/ledger/proof"
	"jobledger/projection/audit"
	"jobledger/projection/follow"
)

// badNight returns a ledger with the history of testdata/history/bad-night.jsonl, and all of it as a window.
func badNight(t *testing.T) (*ledger.Store, Window) {
	t.Helper()
	store := ledgertest.Open(t)
	return store, Window{Until: nighttest.ImportInto(t, &commands.Service{Store: store})}
}

func TestLinesOfAWindow(t *testing.T) {
	store, all := badNight(t)
	export := func(w Window, bodies bool) []byte {
		t.Helper()
		var out bytes.Buffer
		var reported int64
		progress := func(events int) { reported += int64(events) }
		n, err := Lines(t.Context(), store, w, LinesOptions{Bodies: bodies, Progress: progress}, &out)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(w.Until-w.After, 0); n != want || int64(bytes.Count(out.Bytes(), []byte("\n"))) != want {
			t.Errorf("%+v: %d events returned, %d lines", w, n, bytes.Count(out.Bytes(), []byte("\n")))
		}
		if n-reported < 0 || n-reported >= progressStep {
			t.Errorf("%+v: progress of %d for %d events", w, reported, n)
		}
		return out.Bytes()
	}
	whole := export(all, true)
	parts := slices.Concat(export(Window{Until: 2500}, true), export(Window{After: 2500, Until: all.Until},
		true))
	if !bytes.Equal(whole, parts) {
		t.Error("two windows that meet differ from the whole")
	}
	if bare := export(all, false); len(bare) >= len(whole) || bytes.Contains(bare, []byte(`"payload"`)) {
		t.Errorf("%d bytes without bodies, %d with them", len(bare), len(whole))
	}
	if out := export(Window{After: 10, Until: 10}, true); len(out) > 0 {
		t.Errorf("an empty window: %s", out)
	}

	// The exported lines give the same ledger elsewhere.
	copied := ledgertest.Open(t)
	lines := files.Lines(io.NewSectionReader(bytes.NewReader(whole), 0, int64(len(whole))))
	if _, err := load.Import(t.Context(), &commands.Service{Store: copied}, "cli:test", "copy", lines,
		nil); err != nil {
		t.Fatal(err)
	}
	verify(t, copied)
	verify(t, store)
}

func verify(t *testing.T, store *ledger.Store) {
	t.Helper()
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		if len(v.Findings) > 0 {
			t.Errorf("verify: %+v", v.Findings)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Perfetto needs non-overlapping slices per thread, arrows that begin and end within slices, and text for
// numbers that are too large for a float.
func TestTraceForPerfetto(t *testing.T) {
	store, all := badNight(t)
	claims := 0
	filter := ledger.Filter{Kinds: []event.Kind{event.KindClaimed}}
	for line, err := range store.Lines(t.Context(), filter, false) {
		if err != nil {
			t.Fatal(err, line)
		}
		claims++
	}
	for _, within := range []Window{all, {After: 2000, Until: 3000}, {After: all.Until, Until: all.Until}} {
		var out bytes.Buffer
		if err := Trace(t.Context(), store, within, &out); err != nil {
			t.Fatal(err)
		}
		var trace struct{ TraceEvents []traceEvent }
		if err := json.Unmarshal(out.Bytes(), &trace); err != nil {
			t.Fatal(err)
		}
		type lane struct{ pid, tid int }
		slicesOf, named, arrows := make(map[lane][]traceEvent), make(map[lane]bool), make(map[string][]traceEvent)
		drawn := 0
		for _, e := range trace.TraceEvents {
			at := lane{e.PID, e.TID}
			switch e.Phase {
			case "M":
				named[at] = true
			case "X":
				drawn++
				slicesOf[at] = append(slicesOf[at], e)
				if !named[at] || !named[lane{e.PID, 0}] {
					t.Errorf("a slice on a lane without a name: %+v", e)
				}
				if _, ok := e.Args["pos"].(string); !ok {
					t.Errorf("pos is a number: %+v", e)
				}
			case "s", "f":
				arrows[e.ID] = append(arrows[e.ID], e)
			}
		}
		if within == all && drawn != claims {
			t.Errorf("%d slices for %d claims", drawn, claims)
		}
		if within.After == 2000 && (drawn == 0 || drawn >= claims/2) ||
			within.After == all.Until && drawn != 0 {
			t.Errorf("%d slices from event %d to %d", drawn, within.After+1, within.Until)
		}
		for at, list := range slicesOf {
			slices.SortFunc(list, func(a, b traceEvent) int { return cmp.Compare(a.TS, b.TS) })
			for i, e := range list[1:] {
				if end := list[i].TS + *list[i].Dur; end > e.TS {
					t.Errorf("lane %v: %+v ends at %d, but %+v has begun", at, list[i], end, e)
				}
			}
		}
		if within == all && len(arrows) < 6 {
			t.Errorf("only %d jobs changed workers", len(arrows))
		}
		for id, pair := range arrows {
			if len(pair) != 2 || pair[0].Phase != "s" || pair[1].Phase != "f" || pair[0].PID == pair[1].PID ||
				pair[0].TS > pair[1].TS {
				t.Errorf("arrow %s: %+v", id, pair)
			}
			for _, end := range pair {
				meets := func(x traceEvent) bool { return x.TS <= end.TS && end.TS <= x.TS+*x.Dur }
				if !slices.ContainsFunc(slicesOf[lane{end.PID, end.TID}], meets) {
					t.Errorf("arrow %s does not end on a slice: %+v", id, end)
				}
			}
		}
	}
}

func TestCSVRowPerClaim(t *testing.T) {
	store, all := badNight(t)
	rows := func(within Window) [][]string {
		var out bytes.Buffer
		if err := CSV(t.Context(), store, within, &out); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows[1:]
	}
	outcomes := make(map[string]int)
	for _, row := range rows(all) {
		outcomes[row[10]]++
	}
	kinds := make(map[string]int)
	for line, err := range store.Lines(t.Context(), ledger.Filter{Until: all.Until, Ending: true}, false) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Attempt > 0 {
			kinds[line.Kind().String()]++
		}
	}
	for kind, n := range kinds {
		if outcomes[kind] != n {
			t.Errorf("%s: %d rows for %d events", kind, outcomes[kind], n)
		}
	}
	// A claim is in every window in which it was live: each row of the two halves is a row of the whole.
	first, second := rows(Window{Until: 2500}), rows(Window{After: 2500, Until: all.Until})
	live := 0
	for _, row := range first {
		if row[10] == "" {
			live++
		}
	}
	if whole := len(rows(all)); len(first)+len(second)-live != whole || live == 0 {
		t.Errorf("%d rows, then %d, of which %d were live at the cut; %d in all", len(first), len(second), live,
			whole)
	}
}

// A walk that begins in the middle must return what the walk from the first event returns from there on.
func TestEachClaimFromMiddle(t *testing.T) {
	store, all := badNight(t)
	type step struct {
		e     event.Event
		queue string
	}
	var steps []step
	err := EachEvent(t.Context(), store, all, nil, func(e event.Event, queue string) error {
		steps = append(steps, step{e, queue})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		w := Window{After: random.Int64N(all.Until), Until: 1 + random.Int64N(all.Until)}
		var want, got []follow.Claim
		var claims follow.Claims
		for _, s := range steps[:w.Until] {
			if c := claims.Add(s.e, s.queue); c != nil && c.End != nil && c.End.Pos > w.After {
				want = append(want, *c)
			}
		}
		for _, c := range claims.Live() {
			want = append(want, *c)
		}
		err := eachClaim(t.Context(), store, w, nil, func(c *follow.Claim) error {
			got = append(got, *c)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("events %d to %d: %d claims, want %d", w.After+1, w.Until, len(got), len(want))
		}
		next := w.After
		err = EachEvent(t.Context(), store, w, nil, func(e event.Event, queue string) error {
			if want := steps[next]; queue != want.queue || !reflect.DeepEqual(e, want.e) {
				t.Errorf("after event %d: got %+v in %q, want %+v in %q", w.After, e, queue, want.e, want.queue)
			}
			next++
			return nil
		})
		if err != nil || next != max(w.Until, w.After) {
			t.Fatalf("events %d to %d: ended at %d: %v", w.After+1, w.Until, next, err)
		}
	}
}

func TestCSVCellsAreNoFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "w1": "w1", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "a=1": "a=1",
	} {
		if got := words.Cell(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// An export says so where events leave the ledger before it has read them.
func TestLinesThatLeaveMeanwhile(t *testing.T) {
	store, all := badNight(t)
	service, dir := &commands.Service{Store: store}, t.TempDir()
	leave := func() {
		options := archive.Options{Dir: dir, Actor: "cli:test", OlderThan: time.Hour, Most: proof.BlockSize}
		for {
			due, err := archive.Due(t.Context(), store, options.OlderThan)
			if err == nil {
				_, err = archive.Close(t.Context(), service, due.Hi, options)
			}
			if errors.Is(err, archive.ErrNothing) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		m := archive.Removal{Service: service, Dir: dir, Actor: "cli:test", OlderThan: time.Hour}
		if _, err := m.All(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	last := int64(0)
	for line, err := range linesOf(t.Context(), store, all, false) {
		if last == 0 {
			leave()
		}
		if err != nil {
			if !errors.Is(err, ledger.ErrBusy) || last == all.Until {
				t.Errorf("after event %d of %d: %v", last, all.Until, err)
			}
			verify(t, store)
			return
		}
		if line.Pos != last+1 {
			t.Fatalf("event %d comes after %d", line.Pos, last)
		}
		last = line.Pos
	}
	t.Errorf("nothing was said, and the last event is %d of %d", last, all.Until)
}
