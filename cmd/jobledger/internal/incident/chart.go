package incident

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"jobledger/cmd/jobledger/internal/export"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// The size of the chart and the margins for its labels, in pixels.
const (
	chartWidth, chartHeight = 960, 280
	chartLeft, chartRight   = 60, 16
	chartTop, chartBottom   = 28, 32
	queuedColor, heldColor  = "#2563eb", "#ea580c"
	chartInk, chartGrid     = "#374151", "#e5e7eb"
)

// maxPoints bounds the points of a Depth. A long window has one every few minutes.
const maxPoints = 720

// Depth is how many jobs were queued and how many were held, at regular times.
type Depth struct {
	From, To time.Time
	Step     time.Duration    // between two points: a whole number of minutes
	Points   []query.DepthRow // of all queues, at From, From+Step and so on; at least two
	Peaks    []query.Peak     // within the window
}

// readDepth reads the depth of all queues from the minute in which w began to end.
func readDepth(ctx context.Context, tx *ledger.Tx, w export.Window, end time.Time) (*Depth, error) {
	d := &Depth{From: w.From.UTC().Truncate(time.Minute), To: end, Step: time.Minute}
	for d.To.Sub(d.From)/d.Step > maxPoints {
		d.Step += time.Minute
	}
	moments := []time.Time{d.From}
	for at := d.From.Add(d.Step); !at.After(d.To); at = at.Add(d.Step) {
		moments = append(moments, at)
	}
	before, err := tx.PosAt(ctx, d.From.Add(-time.Microsecond)) // the first point may be before w
	if err != nil {
		return nil, err
	}
	var s query.Span
	if s.From, err = projection.AtPos(ctx, tx, min(before, w.After)); err != nil {
		return nil, err
	}
	if s.To, err = projection.AtPos(ctx, tx, w.Until); err != nil {
		return nil, err
	}
	if d.Points, err = (query.Depth{Span: s, Moments: moments, Merged: true}).Read(ctx, tx); err != nil {
		return nil, err
	}
	if len(d.Points) == 1 { // a line needs two
		d.Points = append(d.Points, d.Points[0])
	}
	if s.From, err = projection.AtPos(ctx, tx, w.After); err != nil {
		return nil, err
	}
	if s.From.At.Before(w.From) {
		s.From.At = w.From
	}
	d.Peaks, err = query.Peaks{Span: s}.Read(ctx, tx)
	return d, err
}

// WriteSVG draws d as a chart with two lines on one scale.
func (d *Depth) WriteSVG(out io.Writer) error {
	top := int64(1)
	for _, p := range d.Points {
		top = max(top, p.Queued(), p.Held)
	}
	top = niceTop(top)
	inner, tall := float64(chartWidth-chartLeft-chartRight), float64(chartHeight-chartTop-chartBottom)
	x := func(i int) float64 { return chartLeft + inner*float64(i)/float64(max(len(d.Points)-1, 1)) }
	y := func(n int64) float64 { return chartTop + tall - tall*float64(n)/float64(top) }
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
			`font-size="12" font-family="sans-serif">`+"\n",
		chartWidth, chartHeight, chartWidth, chartHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, chartHeight)
	for i := range int64(5) {
		n := top * i / 4
		fmt.Fprintf(&b,
			`<path d="M%d %.1fH%d" stroke="%s"/><text x="%d" y="%.1f" fill="%s" text-anchor="end">%d</text>`+"\n",
			chartLeft, y(n), chartWidth-chartRight, chartGrid, chartLeft-6, y(n)+4, chartInk, n)
	}
	for i := range 7 {
		at := (len(d.Points) - 1) * i / 6
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="%s" text-anchor="middle">%s</text>`+"\n",
			x(at), chartHeight-10, chartInk, d.From.Add(time.Duration(at)*d.Step).Format(d.timeLayout()))
	}
	for i, line := range []struct {
		name, color string
		of          func(query.DepthRow) int64
	}{
		{"queued", queuedColor, query.DepthRow.Queued},
		{"claimed or running", heldColor, func(p query.DepthRow) int64 { return p.Held }},
	} {
		fmt.Fprintf(&b, `<text x="%d" y="18" fill="%s">%s</text>`+"\n", chartLeft+90*i, line.color, line.name)
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, line.color)
		for i, p := range d.Points {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(i), y(line.of(p)))
		}
		b.WriteString(`"/>` + "\n")
	}
	fmt.Fprintf(&b, `<text x="%d" y="18" fill="%s" text-anchor="end">jobs every %s from %s UTC</text>`+
		"\n</svg>\n",
		chartWidth-chartRight, chartInk, words.Duration(d.Step), d.From.Format("2006-01-02 15:04"))
	_, err := io.WriteString(out, b.String())
	return err
}

// timeLayout shows the time of day, with the date if the chart is longer than a day.
func (d *Depth) timeLayout() string {
	if d.To.Sub(d.From) > 24*time.Hour {
		return "01-02 15:04"
	}
	return "15:04"
}

// niceTop returns the next number that four grid lines divide well.
func niceTop(n int64) int64 {
	for unit := int64(4); ; unit *= 10 {
		for _, times := range []int64{1, 2, 3, 5} {
			if n <= unit*times {
				return unit * times
			}
		}
	}
}
