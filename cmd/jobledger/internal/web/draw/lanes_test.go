package draw

import (
	"fmt"
	"strings"
	"testing"
	"time"

	_ "jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/query"
)

// Of more workers than the page has rows, those are there with whom something went wrong, and then those
// with the most claims, in the order of the lanes.
func TestSwimKeepsWhatWentWrong(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC)
	l := &query.LaneChart{From: from, To: from.Add(100 * time.Second)}
	for _, k := range query.LaneOutcomes {
		l.Hows = append(l.Hows, k.String())
	}
	l.Hows[0] = "open"
	for i := range swimRows + 10 {
		l.Lanes = append(l.Lanes, query.Lane{Worker: fmt.Sprint("w", i), Slots: 1})
		l.Row, l.Slot, l.Start, l.End = append(l.Row, i), append(l.Slot, 0), append(l.Start, 10_000),
			append(l.End, 40_000)
		l.How, l.Count = append(l.How, 1), append(l.Count, 100-i)
	}
	lost, late := swimRows+3, swimRows+5 // of those with the fewest claims
	l.How[lost], l.Sign, l.Lease = 4, [][2]int64{{int64(lost), 20_000}}, [][2]int64{{int64(lost), 30_000}}
	l.Marks = []query.Mark{{Row: late, At: 60_000, Bar: late}}
	s := query.Lanes{Span: query.Span{From: projection.Moment{At: from},
		To: projection.Moment{At: l.To, Pos: 1}}}
	v := NewSwim(l, s, time.UTC, "")
	if len(v.Rows) != swimRows || v.Omitted != "10 workers" {
		t.Fatalf("%d rows, without %s", len(v.Rows), v.Omitted)
	}
	var names []string
	for _, r := range v.Rows {
		names = append(names, r.Name)
	}
	want := fmt.Sprintf("w0 … w%d w%d w%d", swimRows-3, lost, late)
	if got := strings.Join([]string{names[0], "…", names[swimRows-3], names[swimRows-2], names[swimRows-1]},
		" "); got != want {
		t.Errorf("the rows are %s, want %s", got, want)
	}
	if got := v.Rows[swimRows-2].Slots[0].Shapes[0]; got != (Shape{Kind: "reclaimed", X: 10, Sign: 20, Lease: 30,
		End: 40}) {
		t.Errorf("the lost claim is %+v", got)
	}
	if got := v.Rows[swimRows-1].Slots[0].Shapes; got[0] != (Shape{Kind: "refused", X: 40, End: 60,
		Joined: true}) || got[1].Kind != "succeeded" {
		t.Errorf("the late write and its claim are %+v", got)
	}
}
