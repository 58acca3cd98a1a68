package graph

import (
	"cmp"
	"context"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/deps"
)

// Limits of what is read and returned.
const (
	MostNodes    = 60
	mostAlike    = 6      // jobs of one state next to one job that are nodes of their own
	mostChildren = 2_000  // of one step
	mostEvents   = 50_000 // that are searched for jobs that were enqueued before others
)

// Around asks for the jobs around one.
type Around struct {
	Job   projection.Job // as it was at At
	At    projection.Moment
	Depth int // steps in each direction

	// See reports whether jobs of a queue may be seen. The others, and what is beyond them, are left out.
	// nil: all may be.
	See func(queue string) bool
}

// Graph is the answer to [Around].
type Graph struct {
	Nodes   []Node // the job itself first, then by step
	Edges   []Edge // by their children and parents, in the order of Nodes
	Folded  []Fold
	AtLeast bool // so many children were found that there may be others
	Unread  bool // jobs that were enqueued before others were not looked for: it would take too long
}

// More is how many jobs were found that are not among the Nodes. One that is next to several counts for each.
func (g Graph) More() (n int) {
	for _, f := range g.Folded {
		n += f.Jobs
	}
	return n
}

// Node is a job.
type Node struct {
	Job  projection.Job // with the ID alone if it has left the ledger
	Step int            // so many steps after the job that was asked for; negative: before it
	Held bool           // an operator's hold keeps it
}

// Left reports whether the job has left the ledger, so that no more is known than its id.
func (n Node) Left() bool { return n.Job.State == 0 }

// Edge leads from a job that was to end to one that was to wait for that.
type Edge struct {
	Parent, Child event.JobID
	On            event.Ending
	Is            Wait
}

// Fold are jobs next to one, in one direction, that are not among the nodes.
type Fold struct {
	Of    event.JobID
	After bool // they wait for it; false: it waits for them
	State event.State
	Jobs  int
}

// Wait is what has become of an [Edge].
type Wait string

// What becomes of it.
const (
	Open    Wait = "open"    // the child waits
	Met     Wait = "met"     // the parent has ended as it was to
	Broken  Wait = "broken"  // it has ended in another way, and the child does not run
	Dropped Wait = "dropped" // the child does not wait for it any more, which has not ended as it was to
)

// waitOf is what the states of parent and child, at one moment, say of the edge between them.
func waitOf(on event.Ending, parent, child projection.Job) Wait {
	switch {
	case parent.State == 0 && child.State == event.CancelledState:
		return Dropped
	case parent.State == 0, on.Meets(parent.State):
		return Met
	case parent.State.Final() && (child.State == event.Blocked || child.State == event.CancelledState):
		return Broken
	case child.State == event.Blocked:
		return Open
	}
	return Dropped
}

// reader reads a graph.
type reader struct {
	Around
	Graph
	tx *ledger.Tx
	at map[event.JobID]int // index of Nodes
}

// Read returns the jobs around q.Job, at most MostNodes.
func (q Around) Read(ctx context.Context, tx *ledger.Tx) (Graph, error) {
	r := &reader{Around: q, tx: tx, at: make(map[event.JobID]int)}
	r.add(q.Job, 0)
	for _, toward := range []int{-1, 1} {
		front := []projection.Job{q.Job}
		for step := toward; len(front) > 0 && max(step, -step) <= q.Depth; step += toward {
			links, err := r.links(ctx, front, toward)
			if err == nil {
				front, err = r.take(ctx, links, step)
			}
			if err != nil {
				return r.Graph, err
			}
		}
	}
	if err := cmp.Or(r.join(), r.addMet(ctx)); err != nil {
		return r.Graph, err
	}
	slices.SortStableFunc(r.Edges, func(a, b Edge) int {
		return cmp.Or(r.at[a.Child]-r.at[b.Child], r.at[a.Parent]-r.at[b.Parent])
	})
	return r.Graph, r.addHolds(ctx)
}

func (r *reader) add(j projection.Job, step int) {
	r.at[j.ID] = len(r.Nodes)
	r.Nodes = append(r.Nodes, Node{Job: j, Step: step})
}

// links returns what leads from the jobs of front to the next step.
func (r *reader) links(ctx context.Context, front []projection.Job, toward int) (found []link, err error) {
	if toward > 0 {
		found, more, err := children(ctx, r.tx, front, r.At.Pos, mostChildren)
		r.AtLeast = r.AtLeast || more
		if err != nil {
			return nil, err
		}
		return r.earlier(ctx, front, found)
	}
	for _, j := range front {
		refs, err := afterOf(j)
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			found = append(found, link{parent: ref, child: j.ID})
		}
	}
	var blocked []projection.Job // which alone may have others put before them
	err = r.enqueued(ctx, front, func(j projection.Job, b *event.Enqueued) error {
		if b.Blocked {
			blocked = append(blocked, j)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.put(ctx, blocked, found)
}

// enqueued calls fn with each of jobs that has not left the ledger, and how it was enqueued.
func (r *reader) enqueued(ctx context.Context, jobs []projection.Job,
	fn func(projection.Job, *event.Enqueued) error) error {
	f := ledger.Filter{Kinds: []event.Kind{event.KindEnqueued}, Until: r.At.Pos}
	byNumber := make(map[int64]projection.Job)
	for _, j := range jobs {
		if j.State != 0 {
			f.Jobs, byNumber[j.N] = append(f.Jobs, j.N), j
		}
	}
	if len(f.Jobs) == 0 {
		return nil
	}
	for e, err := range r.tx.Events(ctx, f) {
		if err != nil {
			return err
		}
		if err := fn(byNumber[e.N], e.Body.(*event.Enqueued)); err != nil {
			return err
		}
	}
	return nil
}

// earlier adds the jobs that those of front were enqueued to come before.
func (r *reader) earlier(ctx context.Context, front []projection.Job, found []link) ([]link, error) {
	err := r.enqueued(ctx, front, func(j projection.Job, b *event.Enqueued) error {
		refs, err := afterOf(projection.Job{After: b.Before})
		for _, ref := range refs {
			found = append(found, link{parent: Reference{j.ID, ref.On}, child: ref.ID})
		}
		return err
	})
	return found, err
}

// put adds the jobs that were enqueued to come before some that were blocked.
func (r *reader) put(ctx context.Context, blocked []projection.Job, found []link) ([]link, error) {
	if len(blocked) == 0 {
		return found, nil
	}
	asked, first, last := make(map[event.JobID]bool), blocked[0].N, int64(0)
	end := r.At.Pos
	if r.At.IsNow() {
		var err error
		if end, err = r.tx.Tail(ctx); err != nil {
			return nil, err
		}
	}
	for _, j := range blocked {
		asked[j.ID], first = true, min(first, j.N)
		until := end
		if j.State != event.Blocked && j.State != event.CancelledState { // it waits no more since then
			until = j.N
			e, found, err := r.tx.OneEvent(ctx, ledger.Filter{Job: j.N, Until: end, Last: true,
				Kinds: []event.Kind{event.KindUnblocked, event.KindRetried}})
			if err != nil {
				return nil, err
			}
			if found {
				until = e.Pos
			}
		}
		last = max(last, until)
	}
	if last-first > mostEvents {
		r.Unread = true
		return found, nil
	}
	more, err := before(ctx, r.tx, asked, first, last)
	return append(found, more...), err
}

// take adds the jobs at the other ends of links, and returns those that are new.
func (r *reader) take(ctx context.Context, links []link, step int) (front []projection.Job, err error) {
	ids := make(map[event.JobID]bool)
	for _, l := range links {
		if other := l.other(step); !r.has(other) {
			ids[other] = true
		}
	}
	known, err := r.jobs(ctx, ids, links)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(links, func(a, b link) int {
		return cmp.Compare(known[a.other(step)].N, known[b.other(step)].N)
	})
	type side struct {
		of    event.JobID
		state event.State
	}
	alike := make(map[side]int)
	folds := make(map[side]int) // index of Folded
	for _, l := range links {
		other := l.other(step)
		if !r.has(other) {
			j, found := known[other]
			switch {
			case !found && step > 0: // a child that has left the ledger
				continue
			case r.See != nil && !r.See(j.Queue):
				continue
			case !found:
				j.ID = other
			}
			s := side{l.parent.ID, j.State}
			if step < 0 {
				s.of = l.child
			}
			if alike[s]++; alike[s] > mostAlike || len(r.Nodes) >= MostNodes {
				i, known := folds[s]
				if !known {
					i = len(r.Folded)
					folds[s] = i
					r.Folded = append(r.Folded, Fold{Of: s.of, After: step > 0, State: j.State})
				}
				r.Folded[i].Jobs++
				continue
			}
			r.add(j, step)
			front = append(front, j)
		}
		r.edge(l.parent, l.child)
	}
	return front, nil
}

// other is the job to which l leads in a direction.
func (l link) other(step int) event.JobID {
	if step < 0 {
		return l.parent.ID
	}
	return l.child
}

func (r *reader) has(id event.JobID) bool {
	_, ok := r.at[id]
	return ok
}

// jobs returns the jobs with these ids as they were, but for those that are not there.
func (r *reader) jobs(ctx context.Context, ids map[event.JobID]bool, links []link) (
	map[event.JobID]projection.Job, error) {
	var ns []int64
	for _, l := range links {
		if l.n != 0 && ids[l.child] {
			ns = append(ns, l.n)
			delete(ids, l.child)
		}
	}
	for id := range ids {
		j, ok, err := projection.Get(ctx, r.tx, id)
		if err != nil {
			return nil, err
		}
		if ok && j.N <= r.At.Pos {
			ns = append(ns, j.N)
		}
	}
	jobs, err := projection.JobsAt(ctx, r.tx, ns, r.At)
	found := make(map[event.JobID]projection.Job, len(jobs))
	for _, j := range jobs {
		found[j.ID] = j
	}
	return found, err
}

// edge adds the edge between two nodes.
func (r *reader) edge(parent Reference, child event.JobID) {
	e := Edge{Parent: parent.ID, Child: child, On: parent.On}
	if slices.ContainsFunc(r.Edges, func(o Edge) bool { return o.Parent == e.Parent && o.Child == child }) {
		return
	}
	e.Is = waitOf(e.On, r.Nodes[r.at[e.Parent]].Job, r.Nodes[r.at[child]].Job)
	r.Edges = append(r.Edges, e)
}

// join adds the edges between nodes that no step went along.
func (r *reader) join() error {
	for _, n := range r.Nodes {
		refs, err := afterOf(n.Job)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			if r.has(ref.ID) {
				r.edge(ref, n.Job.ID)
			}
		}
	}
	return nil
}

// addMet says of the blocked jobs that what has come about once does not keep them, though it was retried.
func (r *reader) addMet(ctx context.Context) error {
	f := ledger.Filter{Until: r.At.Pos, ByJob: true}
	waits := func(e Edge) bool {
		return r.Nodes[r.at[e.Child]].Job.State == event.Blocked && (e.Is == Open || e.Is == Broken)
	}
	for _, e := range r.Edges {
		if waits(e) {
			f.Jobs = append(f.Jobs, r.Nodes[r.at[e.Parent]].Job.N)
		}
	}
	if len(f.Jobs) == 0 {
		return nil
	}
	events := make(map[event.JobID][]event.Event)
	for e, err := range r.tx.Events(ctx, f) {
		if err != nil {
			return err
		}
		events[e.Job] = append(events[e.Job], e)
	}
	for i, e := range r.Edges {
		if waits(e) && HasMet(events[e.Parent], e.On, r.Nodes[r.at[e.Child]].Job.N) {
			r.Edges[i].Is = Met
		}
	}
	return nil
}

// HasMet reports whether a job with these events had ended in this way when a child was enqueued, at a
// position, or did so later.
func HasMet(events []event.Event, on event.Ending, child int64) (met bool) {
	for _, e := range events {
		if e.Seq != 0 {
			met = on.Meets(e.To) || met && e.Pos > child
		}
	}
	return met
}

// addHolds says which of the blocked jobs are held.
func (r *reader) addHolds(ctx context.Context) error {
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Job.State != event.Blocked {
			continue
		}
		if r.At.IsNow() {
			edges, err := deps.Of(ctx, r.tx, n.Job.N, 1) // a hold comes first
			if err != nil {
				return err
			}
			n.Held = len(edges) > 0 && edges[0].Parent == 0
			continue
		}
		f := ledger.Filter{Job: n.Job.N, Kinds: []event.Kind{event.KindEnqueued, event.KindUnblocked},
			Until: r.At.Pos}
		for e, err := range r.tx.Events(ctx, f) {
			if err != nil {
				return err
			}
			n.Held = Holds(n.Held, e)
		}
	}
	return nil
}

// Holds reports whether a job is held after one of its events, which it was or was not before.
func Holds(held bool, e event.Event) bool {
	switch b := e.Body.(type) {
	case *event.Enqueued:
		return b.Hold
	case *event.Unblocked:
		return held && !b.Hold
	}
	return held
}
