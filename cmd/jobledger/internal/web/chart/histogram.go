package chart

import (
	"fmt"
	"strings"
)

// Size of a histogram in its own units.
const (
	histogramWidth  = 480
	histogramHeight = 150
	histogramFoot   = 34 // for the names of the buckets
)

// Bar is a bar of a histogram.
type Bar struct {
	Column
	Middle, Top float64 // where its texts are
	Count, Name string  // "": it has none
	Many        bool    // it is of what is above the last end
}

// Histogram says how often something was in which bucket. A small one is for the cell of a table, without
// texts.
type Histogram struct {
	Title, About  string // in words
	Small         bool
	Width, Height float64
	Bars          []Bar
}

// NewHistogram draws counts, each in the bucket that has its name in names. A small one has all buckets, so
// that rows of a table can be compared; a large one those around the first and the last that have a count.
func NewHistogram(title, about string, names []string, counts []int64, small bool) *Histogram {
	h := &Histogram{Title: title, About: about, Small: small, Width: histogramWidth, Height: histogramHeight}
	top, foot, wide := 16.0, float64(histogramFoot), .7
	if small {
		h.Width, h.Height, top, foot, wide = 72, SparkHeight, 1, 0, .86
	}
	first, last, most := -1, -1, int64(0)
	for i, n := range counts {
		if n > 0 {
			if first < 0 {
				first = i
			}
			last, most = i, max(most, n)
		}
	}
	if most == 0 {
		return h
	}
	first, last = max(first-1, 0), min(last+1, len(counts)-1)
	if small {
		first, last = 0, len(counts)-1
	}
	step := h.Width / float64(max(last-first+1, 5))
	for i := first; i <= last; i++ {
		b := Bar{Many: i == len(counts)-1}
		b.Width, b.Height = step*wide, (h.Height-top-foot)*float64(counts[i])/float64(most)
		if counts[i] > 0 {
			b.Height = max(b.Height, 2)
		}
		b.X, b.Y = step*(float64(i-first)+(1-wide)/2), h.Height-foot-b.Height
		b.Middle, b.Top = b.X+b.Width/2, b.Y-4
		if !small {
			b.Name, b.Count = names[i], fmt.Sprint(counts[i])
		}
		h.Bars = append(h.Bars, b)
	}
	return h
}

// Foot is where the line below the bars is.
func (h *Histogram) Foot() float64 {
	if h.Small {
		return h.Height
	}
	return h.Height - histogramFoot
}

// Words are the counts that are not zero with the names of their buckets.
func Words(names []string, counts []int64) string {
	var words []string
	for i, n := range counts {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, names[i]))
		}
	}
	return strings.Join(words, ", ")
}
