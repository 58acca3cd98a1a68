package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/graph"
)

// Sizes of a picture of dependencies.
const (
	boxWidth, boxHeight = 178, 42
	columnStep, rowStep = 222, 54
	boxText             = 26 // letters
)

// Graph is a picture of what a job waited for and what waits for it, from left to right. The lists Before and
// After have the same in words.
type Graph struct {
	Width, Height int
	About         string // in words
	Boxes         []Box
	Lines         []Line
	Before, After []Listed
	Notes         []string // what is not in it
}

// Box is a job, or several that are alike.
type Box struct {
	X, Y       int
	Name, Text string
	Title      string
	Class      string // how it looks
	ID         string // "": they are several
	Here       bool   // the job that the picture is about

	column int
	place  float64 // in its column
}

// Line leads from one box to another one.
type Line struct{ Path, Is, Dash string }

// dashes are what became of a wait: lines differ without colour too.
var dashes = map[string]string{string(graph.Open): "6 4", string(graph.Broken): "9 3 2 3",
	string(graph.Dropped): "1 4", "more": "1 4"}

// Listed is a job of a list.
type Listed struct {
	ID, Name, State string
	Text            []string // what waits for it, or for what it waits
}

// signs are the states of jobs as signs, which the style of pages has too.
var signs = map[event.State]string{event.Blocked: "▣", event.Queued: "○", event.ClaimedState: "◐",
	event.Running: "◐", event.SucceededState: "●", event.FailedState: "✖", event.CancelledState: "⊘"}

// classes are how these states look; at work as links do.
var classes = map[event.State]string{event.Blocked: "quiet", event.Queued: "quiet",
	event.SucceededState: "good", event.FailedState: "problem", event.CancelledState: "pause"}

// NewGraph draws g; nil: the job is alone.
func NewGraph(g graph.Graph) *Graph {
	if len(g.Nodes) < 2 && len(g.Folded) == 0 {
		return nil
	}
	p := &Graph{}
	at := make(map[event.JobID]int) // of Boxes
	columns := longest(g)
	for i, n := range g.Nodes {
		at[n.Job.ID] = len(p.Boxes)
		p.Boxes = append(p.Boxes, newBox(n, i == 0, columns[n.Job.ID]))
	}
	for _, f := range g.Folded {
		toward := -1
		if f.After {
			toward = 1
		}
		text := foldText(f)
		b := Box{Name: fmt.Sprintf("+ %d %s", f.Jobs, text), column: columns[f.Of] + toward}
		b.Title = words.Count(int64(f.Jobs), "further job") + ": " + text
		p.Boxes = append(p.Boxes, b)
	}
	p.place(g, at)
	n := len(g.Nodes)
	for i, f := range g.Folded {
		p.join(p.Boxes[at[f.Of]], p.Boxes[n+i], f.After, "more")
	}
	for _, e := range g.Edges {
		p.join(p.Boxes[at[e.Parent]], p.Boxes[at[e.Child]], true, string(e.Is))
	}
	p.list(g)
	p.sum(g)
	return p
}

// newBox is the box of a job.
func newBox(n graph.Node, here bool, column int) Box {
	b := Box{Name: words.Truncate(NodeName(n), boxText), ID: string(n.Job.ID), Here: here, column: column}
	if b.Class = "quiet"; n.Left() {
		b.Text, b.Title = "in the archive", string(n.Job.ID)+": it has left the ledger for its archive"
		return b
	}
	if b.Class = classes[n.Job.State]; n.Held {
		b.Class = "pause" // a person stopped it
	}
	b.Text = signs[n.Job.State] + " " + stateText(n)
	if room := boxText - len([]rune(b.Text)); room > 4 {
		b.Text += " · " + words.Truncate(words.Escape(n.Job.Queue), room)
	}
	b.Title = fmt.Sprintf("%s, in %s: %s, job %s", NodeName(n), n.Job.Queue, stateText(n), n.Job.ID)
	return b
}

// NodeName is what a job is called among others.
func NodeName(n graph.Node) string { return words.Escape(cmp.Or(n.Job.Key, string(n.Job.ID))) }

// stateText is the state of a job, and that it is held.
func stateText(n graph.Node) string {
	switch {
	case n.Left():
		return "in the archive"
	case n.Held:
		return "held"
	}
	return n.Job.State.String()
}

// foldText is the state of jobs that are alike.
func foldText(f graph.Fold) string { return stateText(graph.Node{Job: projection.Job{State: f.State}}) }

// longest is the column of each job: one more than the last of those before it, counted from the first one.
func longest(g graph.Graph) map[event.JobID]int {
	columns := make(map[event.JobID]int)
	for _, n := range g.Nodes {
		columns[n.Job.ID] = n.Step
	}
	for range g.Nodes { // there is no circle
		for _, e := range g.Edges {
			from, to := columns[e.Parent], columns[e.Child]
			switch {
			case from < to:
			case from >= 0:
				columns[e.Child] = from + 1
			default:
				columns[e.Parent] = to - 1
			}
		}
	}
	return columns
}

// place gives each box its place: in its column near those that it is joined to in columns that are nearer
// to the job itself.
func (p *Graph) place(g graph.Graph, at map[event.JobID]int) {
	near := make([][]int, len(p.Boxes))
	meet := func(a, b int) { near[a], near[b] = append(near[a], b), append(near[b], a) }
	for _, e := range g.Edges {
		meet(at[e.Parent], at[e.Child])
	}
	for i, f := range g.Folded {
		meet(at[f.Of], len(g.Nodes)+i)
	}
	byColumn := make(map[int][]int)
	first, last, most := 0, 0, 1
	for i, b := range p.Boxes {
		first, last = min(first, b.column), max(last, b.column)
		byColumn[b.column] = append(byColumn[b.column], i)
		most = max(most, len(byColumn[b.column]))
	}
	for distance := 0; distance <= max(last, -first); distance++ {
		for _, column := range slices.Compact([]int{-distance, distance}) {
			boxes := byColumn[column]
			for i, box := range boxes {
				sum, n := 0.0, 0
				for _, other := range near[box] {
					if c := p.Boxes[other].column; max(c, -c) < distance {
						sum, n = sum+p.Boxes[other].place, n+1
					}
				}
				p.Boxes[box].place = float64(i) - float64(len(boxes)-1)/2
				if n > 0 {
					p.Boxes[box].place = sum / float64(n)
				}
			}
			slices.SortStableFunc(boxes, func(a, b int) int {
				return cmp.Compare(p.Boxes[a].place, p.Boxes[b].place)
			})
			for i, box := range boxes {
				p.Boxes[box].place = float64(i) - float64(len(boxes)-1)/2
			}
		}
	}
	p.Width, p.Height = (last-first)*columnStep+boxWidth+4, most*rowStep-(rowStep-boxHeight)+4
	for i := range p.Boxes {
		b := &p.Boxes[i]
		b.X = 2 + (b.column-first)*columnStep
		b.Y = p.Height/2 - boxHeight/2 + int(b.place*rowStep)
	}
}

// join draws a line from one box to another one, or back.
func (p *Graph) join(from, to Box, forward bool, is string) {
	if !forward {
		from, to = to, from
	}
	x, y, end, down := from.X+boxWidth, from.Y+boxHeight/2, to.X, to.Y+boxHeight/2
	half := max(20, (end-x)/2)
	p.Lines = append(p.Lines, Line{fmt.Sprintf("M%d %dC%d %d %d %d %d %dm-6-4l6 4l-6 4", x, y, x+half, y,
		end-half, down, end, down), is, dashes[is]})
}

// endings are how a job was to end.
var endings = map[event.Ending]string{event.OnSucceeded: "success", event.OnFailed: "failure",
	event.OnFinished: "end"}

// list writes the same in words.
func (p *Graph) list(g graph.Graph) {
	names := make(map[event.JobID]string)
	for _, n := range g.Nodes {
		names[n.Job.ID] = NodeName(n)
	}
	for _, n := range g.Nodes[1:] {
		one := Listed{ID: string(n.Job.ID), Name: names[n.Job.ID], State: stateText(n)}
		for _, e := range g.Edges {
			switch {
			case n.Step < 0 && e.Parent == n.Job.ID:
				one.Text = append(one.Text, waiting(names[e.Child], "its "+endings[e.On], e.Is))
			case n.Step > 0 && e.Child == n.Job.ID:
				one.Text = append(one.Text, waiting("it", fmt.Sprintf("the %s of %s", endings[e.On], names[e.Parent]),
					e.Is))
			}
		}
		if n.Step < 0 {
			p.Before = append(p.Before, one)
		} else {
			p.After = append(p.After, one)
		}
	}
	for _, f := range g.Folded {
		one := Listed{Name: words.Count(int64(f.Jobs), "further job"), State: foldText(f)}
		if f.After {
			one.Text = []string{words.Plural(int64(f.Jobs), "it waits", "they wait") + " for " + names[f.Of]}
			p.After = append(p.After, one)
		} else {
			one.Text = []string{names[f.Of] + " was to wait for " + words.Plural(int64(f.Jobs), "it", "them")}
			p.Before = append(p.Before, one)
		}
	}
}

// waiting says what became of a wait.
func waiting(who, what string, is graph.Wait) string {
	switch is {
	case graph.Met:
		return fmt.Sprintf("%s waited for %s, which has come about", who, what)
	case graph.Broken:
		return fmt.Sprintf("%s waited for %s, which cannot come about any more", who, what)
	case graph.Dropped:
		return fmt.Sprintf("%s does not wait for %s any more", who, what)
	}
	return fmt.Sprintf("%s waits for %s", who, what)
}

// sum says how many jobs there are in which states, and what is missing.
func (p *Graph) sum(g graph.Graph) {
	counts := map[bool]map[string]int{true: {}, false: {}}
	total := map[bool]int{}
	add := func(after bool, state string, n int) { counts[after][state] += n; total[after] += n }
	for _, n := range g.Nodes[1:] {
		add(n.Step > 0, stateText(n), 1)
	}
	for _, f := range g.Folded {
		add(f.After, foldText(f), f.Jobs)
	}
	var parts []string
	for _, after := range []bool{false, true} {
		if total[after] == 0 {
			continue
		}
		var states []string
		for state, n := range counts[after] {
			states = append(states, fmt.Sprintf("%d %s", n, state))
		}
		slices.Sort(states)
		side := "before it"
		if after {
			side = "after it"
		}
		parts = append(parts, fmt.Sprintf("%d %s: %s", total[after], side, strings.Join(states, ", ")))
	}
	p.About = strings.Join(parts, "; ")
	if g.AtLeast {
		p.Notes = append(p.Notes, "More jobs wait for it than were read; the numbers are of the oldest of them.")
	}
	if g.Unread {
		p.Notes = append(p.Notes, "Jobs that were enqueued later to come before one of these (--before) were not "+
			"looked for: it waited for too long.")
	}
}
