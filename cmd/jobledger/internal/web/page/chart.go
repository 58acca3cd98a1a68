package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
)

// Size of a chart in its own units.
const (
	chartWidth  = 960
	chartHeight = 150
	chartLeft   = 46
	chartTop    = 8
	chartBottom = 20
)

// chart is a picture of numbers over time, as SVG. The table of it has the same in words.
type chart struct {
	Title, About string
	Lines        []chartLine
	Grid         []chartText // horizontal lines
	Ticks        []chartText // times
	Table        *render.Table
}

type chartLine struct {
	Name, Class, Path string
}

type chartText struct {
	X, Y         float64
	Text, Anchor string
}

// series is one line of a chart.
type series struct {
	name, class string
	values      []float64
	area        bool
}

// newChart draws series that begin at from, with step between two values.
func newChart(title string, from time.Time, step time.Duration, zone *time.Location, unit string,
	all ...series) *chart {
	c := &chart{Title: title}
	top, n := 0.0, 0
	for _, s := range all {
		for _, v := range s.values {
			top = max(top, v)
		}
		n = max(n, len(s.values))
	}
	top = niceTop(top)
	width, height := float64(chartWidth-chartLeft), float64(chartHeight-chartTop-chartBottom)
	x := func(i int) float64 { return chartLeft + width*float64(i)/float64(max(n-1, 1)) }
	y := func(v float64) float64 { return chartTop + height - height*v/top }
	for _, share := range []float64{0, .5, 1} {
		c.Grid = append(c.Grid, chartText{chartLeft - 6, y(top * share), number(top*share) + unit, "end"})
	}
	anchors := [...]string{"start", "middle", "middle", "middle", "end"}
	for i := range anchors {
		at := (n - 1) * i / 4
		c.Ticks = append(c.Ticks, chartText{x(at), chartHeight - 6,
			from.Add(time.Duration(at) * step).In(zone).Format("15:04"), anchors[i]})
	}
	c.Table = &render.Table{Columns: []render.Column{{Title: "TIME"}}}
	var names []string
	for _, s := range all {
		var b strings.Builder
		for i, v := range s.values {
			fmt.Fprintf(&b, "%c%.1f %.1f", "LM"[b2i(i == 0)], x(i), y(v))
		}
		if s.area {
			fmt.Fprintf(&b, "L%.1f %.1fL%.1f %.1fZ", x(len(s.values)-1), y(0), x(0), y(0))
		}
		c.Lines = append(c.Lines, chartLine{s.name, s.class, b.String()})
		c.Table.Columns = append(c.Table.Columns, render.Column{Title: strings.ToUpper(s.name), Right: true})
		most := 0.0
		for _, v := range s.values {
			most = max(most, v)
		}
		names = append(names, fmt.Sprintf("%s up to %s%s", s.name, number(most), unit))
	}
	for i := range n {
		row := []string{from.Add(time.Duration(i) * step).In(zone).Format("15:04:05")}
		for _, s := range all {
			row = append(row, number(s.values[i]))
		}
		c.Table.Add(row...)
	}
	c.About = title + ": " + strings.Join(names, ", ")
	return c
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// number is v with as many digits as people need.
func number(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// niceTop returns the next round number.
func niceTop(v float64) float64 {
	for unit := .01; ; unit *= 10 {
		for _, times := range []float64{1, 2, 5} {
			if unit*times >= v {
				return unit * times
			}
		}
	}
}

func floats(counts []int64) []float64 {
	out := make([]float64, len(counts))
	for i, n := range counts {
		out[i] = float64(n)
	}
	return out
}
