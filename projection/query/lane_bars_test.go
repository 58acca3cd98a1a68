package query_test

import (
	"bytes"
	"maps"
	"math"
	"os"
	"path/filepath"
	"testing"

	"jobledger/commands/commandstest"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/internal/historytest"
	"jobledger/projection/query"
)

// night is a ledger with the bad night.
func night(t *testing.T) *ledger.Store {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(historytest.Dir(t), "bad-night.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	s := commandstest.New(t)
	_, err = load.Import(t.Context(), s.Service, "cli:test", "bad-night.jsonl",
		func(yield func(event.Line, error) bool) {
			for text := range bytes.Lines(file) {
				var line event.Line
				if err := line.UnmarshalJSON(bytes.TrimSpace(text)); !yield(line, err) {
					return
				}
			}
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Store
}

// Lanes have at most so many bars also where more claims than that failed or were lost, and their bars have
// all claims, by outcome.
func TestLanesOfManyFailures(t *testing.T) {
	s := night(t)
	var all []query.Attempt
	var span query.Lanes
	err := s.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		if span.From, err = projection.AtPos(t.Context(), tx, 1); err != nil {
			return err
		}
		if span.To, err = projection.AtPos(t.Context(), tx, math.MaxInt64); err != nil {
			return err
		}
		all, err = query.Attempts{Span: span.Span}.Read(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want, badly := make(map[string]int), 0
	for _, a := range all {
		if want[a.Outcome.String()]++; !query.EndedWell(a.Outcome) {
			badly++
		}
	}
	joined := 0
	for _, columns := range []int{1, 250, 1200, 8192} {
		for _, most := range []int{2000, badly + 100, badly, badly - 1, badly / 2, 120} {
			span.Columns = columns
			l := query.LaneChart{All: all}
			l.DrawAtMost(span, most)
			if len(l.Row) > most {
				t.Errorf("%d columns: %d bars of %d claims, at most %d are wanted", columns, len(l.Row), len(all), most)
			}
			got := make(map[string]int)
			for i, how := range l.How {
				got[query.LaneOutcomes[how].String()] += l.Count[i]
				if l.Strips && l.Count[i] > 1 && !query.EndedWell(query.LaneOutcomes[how]) {
					joined += l.Count[i]
				}
			}
			if !maps.Equal(got, want) || l.Claims != len(all) || l.Joined != len(all)-len(l.Row) {
				t.Errorf("%d columns, at most %d bars: they have %v of %d claims, want %v", columns, most, got, l.Claims,
					want)
			}
			if most < badly && !l.Strips {
				t.Errorf("%d columns: %d claims ended badly, and at most %d bars are no strips", columns, badly, most)
			}
			for _, pair := range l.Gone {
				if l.Strips && (l.Count[pair[0]] != 1 || l.Count[pair[1]] != 1) {
					t.Fatalf("a line from or to a bar of several claims: %v", pair)
				}
			}
		}
	}
	if joined == 0 {
		t.Error("no claims that ended badly were joined")
	}
}
