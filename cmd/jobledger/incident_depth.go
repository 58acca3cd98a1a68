package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/render"
	"jobledger/ledger"
	"jobledger/projection"
)

// maxDepthPoints bounds a chart; a longer time is looked at every so many minutes.
const maxDepthPoints = 720

// depth is how many jobs were queued, and how many claimed or running, minute by minute.
type depth struct {
	from, to time.Time
	step     time.Duration
	next     time.Time // of the next point
	points   []depthPoint
	tally    projection.Tally
	now      depthPoint
	peaks    map[string]*peak // by queue
}

type depthPoint struct{ queued, held int64 }

type peak struct {
	queued, held     int64
	queuedAt, heldAt time.Time
}

func newDepth(from, to time.Time) *depth {
	d := &depth{from: from.UTC().Truncate(time.Minute), to: to, step: time.Minute, tally: projection.Tally{}, peaks: make(map[string]*peak)}
	for to.Sub(d.from)/d.step > maxDepthPoints {
		d.step += time.Minute
	}
	d.next = d.from
	return d
}

// add takes the next event; within, it may be the highest point of its queue.
func (d *depth) add(e ledger.Event, queue string, within bool) {
	d.upTo(e.At)
	if e.Seq == 0 {
		return
	}
	d.tally.Add(e, queue)
	d.now.count(e.From, -1)
	d.now.count(e.To, 1)
	if !within {
		return
	}
	p := d.peaks[queue]
	if p == nil {
		p = &peak{}
		d.peaks[queue] = p
	}
	states := d.tally[queue]
	if n := states[ledger.Queued]; n > p.queued {
		p.queued, p.queuedAt = n, e.At
	}
	if n := states[ledger.ClaimedState] + states[ledger.Running]; n > p.held {
		p.held, p.heldAt = n, e.At
	}
}

func (n *depthPoint) count(s ledger.State, by int64) {
	switch {
	case s == ledger.Queued:
		n.queued += by
	case s.Held():
		n.held += by
	}
}

// upTo takes the points before t.
func (d *depth) upTo(t time.Time) {
	for d.next.Before(t) && !d.next.After(d.to) {
		d.points = append(d.points, d.now)
		d.next = d.next.Add(d.step)
	}
}

func (d *depth) end() {
	d.upTo(d.to.Add(time.Nanosecond))
	if len(d.points) == 1 { // a line needs two
		d.points = append(d.points, d.now)
	}
}

// The chart's size, and the space for its labels.
const (
	chartWidth, chartHeight = 960, 280
	chartLeft, chartRight   = 60, 16
	chartTop, chartBottom   = 28, 32
	queuedColor, heldColor  = "#2563eb", "#ea580c"
	chartInk, chartGrid     = "#374151", "#e5e7eb"
)

// write draws the chart as SVG: two lines on one scale.
func (d *depth) write(out io.Writer) error {
	top := int64(1)
	for _, p := range d.points {
		top = max(top, p.queued, p.held)
	}
	top = niceTop(top)
	inner, tall := float64(chartWidth-chartLeft-chartRight), float64(chartHeight-chartTop-chartBottom)
	x := func(i int) float64 { return chartLeft + inner*float64(i)/float64(max(len(d.points)-1, 1)) }
	y := func(n int64) float64 { return chartTop + tall - tall*float64(n)/float64(top) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-size="12" font-family="sans-serif">`+"\n",
		chartWidth, chartHeight, chartWidth, chartHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, chartHeight)
	for i := range int64(5) {
		n := top * i / 4
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="%s"/><text x="%d" y="%.1f" fill="%s" text-anchor="end">%d</text>`+"\n",
			chartLeft, y(n), chartWidth-chartRight, chartGrid, chartLeft-6, y(n)+4, chartInk, n)
	}
	for i := range 7 {
		at := (len(d.points) - 1) * i / 6
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="%s" text-anchor="middle">%s</text>`+"\n",
			x(at), chartHeight-10, chartInk, d.from.Add(time.Duration(at)*d.step).Format(d.timeForm()))
	}
	for i, line := range []struct {
		name, color string
		of          func(depthPoint) int64
	}{
		{"queued", queuedColor, func(p depthPoint) int64 { return p.queued }},
		{"claimed or running", heldColor, func(p depthPoint) int64 { return p.held }},
	} {
		fmt.Fprintf(&b, `<text x="%d" y="18" fill="%s">%s</text>`+"\n", chartLeft+90*i, line.color, line.name)
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, line.color)
		for i, p := range d.points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(i), y(line.of(p)))
		}
		b.WriteString(`"/>` + "\n")
	}
	fmt.Fprintf(&b, `<text x="%d" y="18" fill="%s" text-anchor="end">jobs every %s from %s UTC</text>`+"\n</svg>\n",
		chartWidth-chartRight, chartInk, render.Duration(d.step), d.from.Format("2006-01-02 15:04"))
	_, err := io.WriteString(out, b.String())
	return err
}

// timeForm is the time of day, unless that would repeat itself.
func (d *depth) timeForm() string {
	if d.to.Sub(d.from) > 24*time.Hour {
		return "01-02 15:04"
	}
	return "15:04"
}

// niceTop is the next number that four steps divide well.
func niceTop(n int64) int64 {
	for unit := int64(4); ; unit *= 10 {
		for _, times := range []int64{1, 2, 3, 5} {
			if n <= unit*times {
				return unit * times
			}
		}
	}
}
