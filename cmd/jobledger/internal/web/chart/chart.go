package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/words"
)

// Size of a chart in its own units.
const (
	width  = 600
	height = 150
	left   = 46
	top    = 8
	bottom = 20
)

// Chart is a picture of numbers over time.
type Chart struct {
	Title, About string
	Unit         string // of its numbers; "": none
	Lines        []Line
	Grid         []Text // horizontal lines
	Ticks        []Text // times
	Marks        []Mark
	Table        *words.Table
}

// Line is a line, or an area if its class, which is its name, fills it.
type Line struct{ Name, Path string }

// Text is a text within a picture.
type Text struct {
	X, Y         float64
	Text, Anchor string
}

// Mark is something that happened, as a vertical line.
type Mark struct {
	X           float64
	Class, Text string
}

// How says how a [Series] is drawn.
type How int

// The ways to draw a series.
const (
	Plain   How = iota // a line
	Area               // filled down to zero
	Stacked            // an area on top of the stacked one before it
	Down               // an area below zero
	Band               // filled down to the next series
)

// Series is one row of numbers of a chart. NaN: there is none.
type Series struct {
	Name   string
	Values []float64
	How    How
}

// Of returns a series.
func Of(name string, values []float64, how How) Series { return Series{name, values, how} }

// New draws series that begin at from, with step between two values. Marks are at moments.
func New(title string, from time.Time, step time.Duration, zone *time.Location, unit string,
	all ...Series) *Chart {
	c := &Chart{Title: title, Unit: unit}
	s := newScale(all)
	for _, v := range []float64{s.max, (s.max + s.min) / 2, s.min} {
		if s.min < 0 && v != s.max && v != s.min {
			v = 0
		}
		c.Grid = append(c.Grid, Text{left - 6, s.y(v), number(math.Abs(v)) + unit, "end"})
	}
	anchors := [...]string{"start", "middle", "middle", "middle", "end"}
	for i := range anchors {
		at := (s.n - 1) * i / 4
		c.Ticks = append(c.Ticks, Text{s.x(float64(at)), height - 6,
			from.Add(time.Duration(at) * step).In(zone).Format("15:04"), anchors[i]})
	}
	c.Table = &words.Table{Columns: []words.Column{{Title: "TIME"}}}
	var names []string
	base := make([]float64, s.n) // what is stacked so far
	for i, one := range all {
		values, below := one.Values, make([]float64, s.n)
		switch one.How {
		case Stacked:
			below = base
			values = make([]float64, len(one.Values))
			for k, v := range one.Values {
				values[k] = below[k] + v
			}
			base = values
		case Down:
			values = make([]float64, len(one.Values))
			for k, v := range one.Values {
				values[k] = -v
			}
		case Band:
			below = all[i+1].Values
		case Plain:
			below = nil
		}
		c.Lines = append(c.Lines, Line{one.Name, s.path(values, below)})
		c.Table.Columns = append(c.Table.Columns, words.Column{Title: strings.ToUpper(one.Name), Right: true})
		names = append(names, one.Name+" "+upTo(one.Values, unit))
	}
	for i := range s.n {
		row := []string{from.Add(time.Duration(i) * step).In(zone).Format("15:04:05")}
		for _, one := range all {
			cell := "-"
			if v := one.Values[i]; !math.IsNaN(v) {
				cell = number(v)
			}
			row = append(row, cell)
		}
		c.Table.Add(row...)
	}
	c.About = title + ": " + strings.Join(names, ", ")
	return c
}

// upTo says in words how large values are.
func upTo(values []float64, unit string) string {
	most := math.NaN()
	for _, v := range values {
		if !math.IsNaN(v) && !(v <= most) {
			most = v
		}
	}
	if math.IsNaN(most) {
		return "unknown"
	}
	return "up to " + number(most) + unit
}

// MarkAt adds a mark; share is the part of the window that had passed then.
func (c *Chart) MarkAt(share float64, class, text string) {
	c.Marks = append(c.Marks, Mark{left + (width-left)*min(max(share, 0), 1), class, text})
}

// scale places the values of a chart.
type scale struct {
	n        int
	max, min float64
}

func newScale(all []Series) *scale {
	s := &scale{}
	var stacked []float64
	for _, one := range all {
		s.n = max(s.n, len(one.Values))
		if len(stacked) < s.n {
			stacked = append(stacked, make([]float64, s.n-len(stacked))...)
		}
		for k, v := range one.Values {
			switch {
			case math.IsNaN(v):
			case one.How == Stacked:
				stacked[k] += v
				s.max = max(s.max, stacked[k])
			case one.How == Down:
				s.min = min(s.min, -v)
			default:
				s.max = max(s.max, v)
			}
		}
	}
	s.max = niceTop(s.max)
	if s.min < 0 {
		s.min = -niceTop(-s.min)
	}
	return s
}

func (s *scale) x(i float64) float64 { return left + (width-left)*i/float64(max(s.n-1, 1)) }

func (s *scale) y(v float64) float64 {
	return top + (height-top-bottom)*(s.max-v)/(s.max-s.min)
}

// path draws values, and fills down to below; nil: it does not. It leaves out what is NaN.
func (s *scale) path(values, below []float64) string {
	var b strings.Builder
	for begin := 0; begin < len(values); begin++ {
		if math.IsNaN(values[begin]) {
			continue
		}
		end := begin
		for end < len(values) && !math.IsNaN(values[end]) {
			fmt.Fprintf(&b, "%c%.1f %.1f", "ML"[min(1, end-begin)], s.x(float64(end)), s.y(values[end]))
			end++
		}
		if end == begin+1 { // one alone has a width too
			fmt.Fprintf(&b, "L%.1f %.1f", s.x(float64(begin))+1, s.y(values[begin]))
		}
		if below != nil {
			for k := end - 1; k >= begin; k-- {
				fmt.Fprintf(&b, "L%.1f %.1f", s.x(float64(k)), s.y(below[k]))
			}
			b.WriteByte('Z')
		}
		begin = end
	}
	return b.String()
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

// Floats are counts as numbers of a series.
func Floats(counts []int64) []float64 {
	out := make([]float64, len(counts))
	for i, n := range counts {
		out[i] = float64(n)
	}
	return out
}

// Known are values where counts says that there are any, and NaN elsewhere.
func Known(values []float64, counts []int64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		if out[i] = v; counts[i] == 0 {
			out[i] = math.NaN()
		}
	}
	return out
}
