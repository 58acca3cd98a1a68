package draw

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection/query"
)

// Bounds of the lanes in a page, which are there for print and without a script.
const (
	swimRows    = 60
	SwimColumns = 600
	SwimBars    = 4000
	slotHeight  = 26 // of a lane's slot, in which bars are from 5 to 25
)

// Swim are lanes of workers: rows of shapes, with times in percent of the width.
type Swim struct {
	Rows    []Row
	Ticks   []Tick
	Omitted string // how many workers had claims too; "": all are there
}

// Row is one worker.
type Row struct {
	Name, Host, Text string // the last says what became of its claims
	Href             string
	Height           int
	Slots            []Slot

	counts          [len(query.LaneOutcomes)]int // of claims, by how they ended
	claims, refused int
	notable         bool // something went wrong in it
}

// Slot has claims of a worker that do not overlap.
type Slot struct {
	Y      int
	Shapes []Shape
}

// Tick is a time on the axis.
type Tick struct {
	X            int // percent
	Text, Anchor string
}

// NewSwim draws l, whose claims are those of s, with times in zone. Links to workers end with atQuery.
func NewSwim(l *query.LaneChart, s query.Lanes, zone *time.Location, atQuery string) *Swim {
	v := &Swim{}
	for i, anchor := range []string{"start", "middle", "middle", "middle", "end"} {
		at := s.From.At.Add(s.To.At.Sub(s.From.At) / 4 * time.Duration(i))
		v.Ticks = append(v.Ticks, Tick{25 * i, at.In(zone).Format("15:04"), anchor})
	}
	v.Rows = make([]Row, len(l.Lanes))
	for i, lane := range l.Lanes {
		row := &v.Rows[i]
		*row = Row{Name: lane.Worker, Host: lane.Host, Height: lane.Slots*slotHeight + 4,
			Href: "/workers/" + url.PathEscape(lane.Worker) + atQuery}
		for slot := range lane.Slots {
			row.Slots = append(row.Slots, Slot{Y: slot * slotHeight})
		}
	}
	v.addShapes(l)
	for i := range v.Rows {
		v.Rows[i].say()
	}
	v.trim()
	return v
}

// addShapes adds the bars and the refused writes of l to the rows.
func (v *Swim) addShapes(l *query.LaneChart) {
	whole := max(float64(l.To.Sub(l.From).Milliseconds()), 1)
	x := func(millis int64) float64 { return hundredths(100 * float64(millis) / whole) }
	signs, leases := make(map[int]int64), make(map[int]int64)
	for _, at := range l.Sign {
		signs[int(at[0])] = at[1]
	}
	for _, at := range l.Lease {
		leases[int(at[0])] = at[1]
	}
	for _, m := range l.Marks { // before the bars, which cover the lines
		one := Shape{Kind: "refused", X: x(m.At), End: x(m.At)}
		slot := 0
		if m.Bar >= 0 && l.Row[m.Bar] == m.Row {
			slot = l.Slot[m.Bar]
			if at := x(l.End[m.Bar]); at < one.End {
				one.X, one.Joined = at, true
			}
		}
		row := &v.Rows[m.Row]
		row.refused++
		row.Slots[slot].Shapes = append(row.Slots[slot].Shapes, one)
	}
	for i := range l.Row {
		row, end := &v.Rows[l.Row[i]], x(l.End[i])
		one := Shape{Kind: l.Hows[l.How[i]], X: x(l.Start[i]), End: end, Sign: end, Lease: end}
		if one.Kind == event.KindReclaimed.String() {
			if at, ok := signs[i]; ok {
				one.Sign = x(at)
			}
			if at, ok := leases[i]; ok {
				one.Lease = x(at)
			}
		}
		row.counts[l.How[i]] += l.Count[i]
		row.Slots[l.Slot[i]].Shapes = append(row.Slots[l.Slot[i]].Shapes, one)
	}
}

// say puts into words what became of the claims of a row.
func (r *Row) say() {
	all := 0
	var parts []string
	for how, n := range r.counts {
		all += n
		if n == 0 {
			continue
		}
		name := "open"
		switch k := query.LaneOutcomes[how]; k {
		case 0:
		case event.KindReclaimed:
			name = "lost"
		default:
			name = k.String()
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, name))
		r.notable = r.notable || name == "lost" || name == "failed"
	}
	if r.refused > 0 {
		parts = append(parts, words.Count(int64(r.refused), "write")+" too late")
	}
	r.claims, r.notable = all, r.notable || r.refused > 0
	r.Text = words.Count(int64(all), "claim") + ": " + strings.Join(parts, ", ")
}

// trim leaves out the rows above the bound: first those in which nothing went wrong, with few claims.
func (v *Swim) trim() {
	more := len(v.Rows) - swimRows
	if more <= 0 {
		return
	}
	order := make([]int, len(v.Rows))
	for i := range order {
		order[i] = i
	}
	weight := func(i int) int {
		if v.Rows[i].notable {
			return v.Rows[i].claims + math.MaxInt32
		}
		return v.Rows[i].claims
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight(b), weight(a)) })
	kept := slices.Sorted(slices.Values(order[:swimRows]))
	rows := make([]Row, 0, swimRows)
	for _, i := range kept {
		rows = append(rows, v.Rows[i])
	}
	v.Rows, v.Omitted = rows, words.Count(int64(more), "worker")
}
