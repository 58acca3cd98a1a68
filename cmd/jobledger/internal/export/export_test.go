package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// badNight is a ledger with the history of testdata/history/bad-night.jsonl.
func badNight(t *testing.T) (*commands.Service, stretch) {
	t.Helper()
	p, _ := printing(0, false)
	content, done, err := p.reread("import", filepath.Join("..", "..", "testdata", "history", "bad-night.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	service := &commands.Service{Store: ledgertest.Open(t)}
	loaded, err := service.Import(t.Context(), "cli:test", "bad-night.jsonl", historyLines(content), nil)
	if err != nil {
		t.Fatal(err)
	}
	return service, stretch{until: loaded.Events}
}

// TestTheTraceIsWhatPerfettoWants: slices of one thread follow each other, arrows begin and end within slices, and
// whatever is too large for a float is text.
func TestTheTraceIsWhatPerfettoWants(t *testing.T) {
	service, s := badNight(t)
	claims := 0
	for line, err := range service.Store.Lines(t.Context(), ledger.Filter{Kinds: []ledger.Kind{ledger.KindClaimed}}, false) {
		if err != nil {
			t.Fatal(err, line)
		}
		claims++
	}
	for _, within := range []stretch{s, {after: 2000, until: 3000}, {after: s.until, until: s.until}} {
		var out bytes.Buffer
		if err := exportTrace(t.Context(), service, within, &out); err != nil {
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
		if within == s && drawn != claims {
			t.Errorf("%d slices for %d claims", drawn, claims)
		}
		if within.after == 2000 && (drawn == 0 || drawn >= claims/2) || within.after == s.until && drawn != 0 {
			t.Errorf("%d slices from event %d to %d", drawn, within.after+1, within.until)
		}
		for at, list := range slicesOf {
			slices.SortFunc(list, func(a, b traceEvent) int { return cmp.Compare(a.TS, b.TS) })
			for i, e := range list[1:] {
				if end := list[i].TS + *list[i].Dur; end > e.TS {
					t.Errorf("lane %v: %+v ends at %d, but %+v has begun", at, list[i], end, e)
				}
			}
		}
		if within == s && len(arrows) < 6 {
			t.Errorf("only %d jobs changed hands", len(arrows))
		}
		for id, pair := range arrows {
			if len(pair) != 2 || pair[0].Phase != "s" || pair[1].Phase != "f" || pair[0].PID == pair[1].PID || pair[0].TS > pair[1].TS {
				t.Errorf("arrow %s: %+v", id, pair)
			}
			for _, end := range pair {
				if !slices.ContainsFunc(slicesOf[lane{end.PID, end.TID}], func(x traceEvent) bool { return x.TS <= end.TS && end.TS <= x.TS+*x.Dur }) {
					t.Errorf("arrow %s does not end on a slice: %+v", id, end)
				}
			}
		}
	}
}

func TestCSVHasARowForEachClaim(t *testing.T) {
	service, s := badNight(t)
	rows := func(within stretch) [][]string {
		var out bytes.Buffer
		if err := exportCSV(t.Context(), service, within, &out); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(&out).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows[1:]
	}
	outcomes := make(map[string]int)
	for _, row := range rows(s) {
		outcomes[row[10]]++
	}
	kinds := make(map[string]int)
	for line, err := range service.Store.Lines(t.Context(), ledger.Filter{Until: s.until, Ending: true}, false) {
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
	// A claim is in every stretch in which it was live: each row of the halves is one of the whole.
	first, second := rows(stretch{until: 2500}), rows(stretch{after: 2500, until: s.until})
	live := 0
	for _, row := range first {
		if row[10] == "" {
			live++
		}
	}
	if whole := len(rows(s)); len(first)+len(second)-live != whole || live == 0 {
		t.Errorf("%d rows, then %d, of which %d were live at the cut; %d in all", len(first), len(second), live, whole)
	}
}

func TestCellsAreNoFormulas(t *testing.T) {
	for text, want := range map[string]string{"": "", "w1": "w1", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx", "\rx": "'\rx", "a=1": "a=1"} {
		if got := harmlessCell(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestQuotesInAReportAreNothingButText(t *testing.T) {
	for text, want := range map[string]string{"": "", "cli:ada@desk": "`cli:ada@desk`", "a|b`c`": "`a\\|b'c'`", "x\n## y\x1b[31m": "`x\\n## y\\x1b[31m`", " ` ": "`'`"} {
		if got := quote(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
