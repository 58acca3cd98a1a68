package draw

import (
	"fmt"

	"jobledger/cmd/jobledger/internal/web/chart"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/attempts"
)

// gapNames are the buckets of gaps in the head of a table, in words, and in a picture.
var gapNames, gapWords, gapShort = func() (names, texts, short []string) {
	end := ""
	for _, d := range attempts.GapEnds {
		end = words.Duration(d)
		names, texts, short = append(names, "≤ "+end), append(texts, "up to "+end), append(short, end)
	}
	return append(names, "> "+end), append(texts, "over "+end), append(short, "more")
}()

// GapHistogram draws the gaps of a worker.
func GapHistogram(name string, g attempts.Gaps, small bool) *chart.Histogram {
	about := chart.Words(gapWords, g.Counts) + "; the longest " + words.Briefly(g.Longest)
	return chart.NewHistogram("Gaps between heartbeats of "+name, about, gapShort, g.Counts, small)
}

// GapTable has the gaps of processes, with the buckets from the first to the last that is not empty; nil if
// there are none. It names the workers if named says so.
func GapTable(found []attempts.Gaps, named bool) *words.Table {
	first, last := len(gapNames), -1
	for _, g := range found {
		for i, n := range g.Counts {
			if n > 0 {
				first, last = min(first, i), max(last, i)
			}
		}
	}
	if last < 0 {
		return nil
	}
	out := &words.Table{}
	if named {
		out.Columns = append(out.Columns, words.Column{Title: "WORKER"})
	}
	out.Columns = append(out.Columns, words.Column{Title: "PROCESS"},
		words.Column{Title: "HEARTBEATS", Right: true})
	for _, name := range gapNames[first : last+1] {
		out.Columns = append(out.Columns, words.Column{Title: name, Right: true})
	}
	out.Columns = append(out.Columns, words.Column{Title: "LONGEST", Right: true})
	for _, g := range found {
		var cells []string
		if named {
			cells = append(cells, g.Worker.Name)
		}
		cells = append(cells, words.Process(g.Worker), fmt.Sprint(g.Sum()))
		for _, n := range g.Counts[first : last+1] {
			cells = append(cells, fmt.Sprint(n))
		}
		out.Add(append(cells, words.Briefly(g.Longest))...)
	}
	return out
}
