package print

import (
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/projection/graph"
	"jobledger/projection/query"
)

// DependenciesJSON are the jobs around one, for programs.
type DependenciesJSON struct {
	Nodes   []NodeJSON `json:"nodes"`    // jobs, at most 60; the one that was asked for is the first
	Edges   []EdgeJSON `json:"edges"`    // between them
	Folded  []FoldJSON `json:"folded"`   // jobs next to a node that are not among them
	More    int        `json:"more"`     // how many jobs folded has; one that is next to several counts for each
	AtLeast bool       `json:"at_least"` // there may be more than more says
	Unread  bool       `json:"unread"`   // jobs that were enqueued to come before others were not all looked for
	AsOf    *string    `json:"as_of" openapi:"optional=as_of,pos"`
	Pos     int64      `json:"pos"`
}

// NodeJSON is a job among others.
type NodeJSON struct {
	ID         string  `json:"id"`
	Queue      *string `json:"queue"` // null: it has left the ledger, and no more is known than its id
	Key        *string `json:"key"`
	State      *string `json:"state"`
	FinishedAt *string `json:"finished_at"`
	Held       bool    `json:"held"` // an operator's hold keeps it
	Step       int     `json:"step"` // steps after the job that was asked for; negative: before it
}

// EdgeJSON leads from a job that was to end to one that was to wait for that.
type EdgeJSON struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Ending string `json:"ending" openapi:"enum=succeeded,failed,finished"` // how it was to end
	// open: it waits; met: that has come about; broken: it cannot any more; dropped: it waits no more
	State string `json:"state" openapi:"enum=open,met,broken,dropped"`
}

// FoldJSON are jobs next to one.
type FoldJSON struct {
	Of    string  `json:"of"`
	After bool    `json:"after"` // they wait for it; false: it waits for them
	State *string `json:"state"` // null: they have left the ledger
	Jobs  int     `json:"jobs"`
}

// NewDependenciesJSON is g for programs; of a moment of the past, with that.
func NewDependenciesJSON(g graph.Graph, past query.Past) any {
	out := struct {
		DependenciesJSON
		AsOf *string `json:"as_of,omitempty"`
		Pos  int64   `json:"pos,omitempty"`
	}{DependenciesJSON: DependenciesJSON{Nodes: []NodeJSON{}, Edges: []EdgeJSON{}, Folded: []FoldJSON{},
		More: g.More(), AtLeast: g.AtLeast, Unread: g.Unread}}
	if past.Given {
		out.AsOf, out.Pos = words.TimeOrNull(past.At), past.Pos
	}
	for _, n := range g.Nodes {
		j := NodeJSON{ID: string(n.Job.ID), Held: n.Held, Step: n.Step}
		if !n.Left() {
			j.Queue, j.Key = &n.Job.Queue, words.TextOrNull(n.Job.Key)
			j.State, j.FinishedAt = words.TextOrNull(n.Job.State.String()), words.TimeOrNull(n.Job.FinishedAt)
		}
		out.Nodes = append(out.Nodes, j)
	}
	for _, e := range g.Edges {
		out.Edges = append(out.Edges, EdgeJSON{string(e.Parent), string(e.Child), e.On.String(), string(e.Is)})
	}
	for _, f := range g.Folded {
		one := FoldJSON{Of: string(f.Of), After: f.After, Jobs: f.Jobs}
		if f.State != 0 {
			one.State = words.TextOrNull(f.State.String())
		}
		out.Folded = append(out.Folded, one)
	}
	return out
}
