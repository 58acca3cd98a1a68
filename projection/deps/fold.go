package deps

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Fold derives the edges from the events, in the order of pos. It resolves an edge with the event that ends
// the parent, even where the table follows in steps. The zero Fold is that of an empty ledger.
type Fold struct {
	// Find returns the number of the job with this id, and its state before the event at pos; 0 for one that
	// has left the ledger.
	Find func(id event.JobID, pos int64) (n int64, state event.State, err error)
	// Horizon is the last event that may have left the ledger, with all those of its job; 0: none has.
	// Dependencies of jobs as old as these are not compared: they may have waited for a job that has left.
	Horizon int64

	// What it holds, which gob keeps for a Fold that goes on.
	Edges    map[int64]map[int64]*folded // by child and parent
	Children map[int64]map[int64]bool    // by parent
	States   map[int64]event.State       // of the jobs with edges
	Gone     map[int64]bool              // the jobs that were to wait for one that has left the ledger
}

// folded is an edge and its outcome.
type folded struct {
	Edge
	Met   bool // the parent has ended as it was to
	Rerun bool // met or broken by an end after which the parent was retried: the child has learned of that end
	Again bool // the parent was retried, and the child with it, which may not have learned of that
}

// Add adds the next event. It returns, as text, how e contradicts the events before it: about a job that does
// not need to wait, cannot wait, or waits once more. An error is one of Find.
func (f *Fold) Add(e *event.Event) (wrong string, err error) {
	wrong, err = f.add(e)
	if e.N <= f.Horizon {
		wrong = ""
	}
	return wrong, err
}

func (f *Fold) add(e *event.Event) (wrong string, err error) {
	b, enqueued := e.Body.(*event.Enqueued)
	if enqueued {
		return f.enqueued(e, b)
	}
	if len(f.Edges)+len(f.Gone) == 0 || e.N == 0 {
		return "", nil
	}
	if wrong = f.own(e); e.Seq != 0 && f.Edges[e.N] != nil {
		f.States[e.N] = e.To
	}
	again, retried := e.Body.(*event.Retried)
	for child := range f.Children[e.N] {
		edge := f.Edges[child][e.N]
		switch {
		case retried:
			edge.Again = again.Heals() && (edge.Again || edge.Broken)
			edge.Broken = edge.Broken && !again.Heals()
			edge.Rerun = edge.Met || edge.Broken
		case e.To.Final() && e.Seq != 0 && !edge.Broken && !edge.Met:
			edge.Met = edge.On.Meets(e.To)
			edge.Broken = !edge.Met
		}
	}
	return wrong, nil
}

// own applies e to the edges of its own job, as a child.
func (f *Fold) own(e *event.Event) (wrong string) {
	open, broken := f.count(e.N)
	switch b := e.Body.(type) {
	case *event.Unblocked:
		if b.Hold {
			if f.Edges[e.N][0] == nil {
				wrong = "its hold is lifted, and it has none"
			} else {
				f.Edges[e.N][0].Met = true
				open--
			}
		}
		switch waits := open + broken; {
		case waits > 0 && !b.Blocked:
			return fmt.Sprintf("unblocked while %d of the ends that it waits for are still missing", waits)
		case waits == 0 && b.Blocked:
			return "its hold is lifted and it stays blocked, and it waits for nothing any more"
		}
		if !b.Blocked {
			f.drop(e.N)
		}
	case *event.Cancelled:
		switch edge := f.Edges[e.N]; {
		case b.Because == "":
			f.drop(e.N)
		case (edge == nil || broken == 0) && !f.Gone[e.N]:
			wrong = fmt.Sprintf("cancelled because of %s, and nothing that it waits for is out of reach", b.Because)
		}
	case *event.Retried:
		for _, edge := range f.Edges[e.N] {
			edge.Again = false
		}
		switch {
		case b.Because == "":
			f.drop(e.N)
		case broken > 0:
			wrong = fmt.Sprintf("to wait once more because of %s, and something else is out of reach", b.Because)
		}
	case *event.Erased:
		f.drop(e.N)
	}
	return wrong
}

// count returns how many edges of a child are open and broken.
func (f *Fold) count(child int64) (open, broken int) {
	for _, edge := range f.Edges[child] {
		switch {
		case edge.Broken:
			broken++
		case !edge.Met:
			open++
		}
	}
	return open, broken
}

func (f *Fold) enqueued(e *event.Event, b *event.Enqueued) (wrong string, err error) {
	if len(b.After) == 0 && len(b.Before) == 0 && !b.Hold {
		return "", nil
	}
	if b.Hold {
		f.put(Edge{Child: e.N}, false)
	}
	gone := false
	for _, ref := range b.After {
		edge, state, err := f.read(ref, e.Pos)
		if err != nil {
			return "", err
		}
		if edge.Parent == 0 { // it had ended, and had nothing left that waits for it
			gone = true
			if f.Gone == nil {
				f.Gone = make(map[int64]bool)
			}
			f.Gone[e.N] = true
			continue
		}
		edge.Child = e.N
		met := edge.On.Meets(state)
		edge.Broken = state.Final() && !met
		f.put(edge, met)
	}
	if open, broken := f.count(e.N); (open+broken > 0) != b.Blocked && !gone {
		wrong = fmt.Sprintf("%d ends that it waits for are still missing, and it begins as %s", open+broken, e.To)
	}
	if !b.Blocked {
		f.drop(e.N)
	} else if f.Edges[e.N] != nil {
		f.States[e.N] = event.Blocked
	}
	for _, ref := range b.Before {
		edge, state, err := f.read(ref, e.Pos)
		if err != nil {
			return "", err
		}
		if edge.Parent == 0 {
			continue
		}
		edge.Child, edge.Parent = edge.Parent, e.N
		if waits := state == event.Blocked || state == event.CancelledState; waits && edge.Child <= f.Horizon {
			f.put(edge, false)
			f.States[edge.Child] = state
			continue
		}
		if f.Edges[edge.Child] == nil || state != event.Blocked && state != event.CancelledState {
			wrong = fmt.Sprintf("%s is to wait for it, and does not wait", ref)
			continue
		}
		f.put(edge, false)
	}
	return wrong, nil
}

// read returns the edge from the job that ref names, and the state of that job.
func (f *Fold) read(ref string, pos int64) (e Edge, state event.State, err error) {
	id, on, err := event.ParseReference(ref)
	if err == nil {
		e.On = on
		e.Parent, state, err = f.Find(id, pos)
	}
	return e, state, err
}

func (f *Fold) put(e Edge, met bool) {
	if f.Edges == nil {
		f.Edges, f.Children = make(map[int64]map[int64]*folded), make(map[int64]map[int64]bool)
		f.States = make(map[int64]event.State)
	}
	if f.Edges[e.Child] == nil {
		f.Edges[e.Child] = make(map[int64]*folded)
	}
	f.Edges[e.Child][e.Parent] = &folded{Edge: e, Met: met}
	if e.Parent != 0 {
		if f.Children[e.Parent] == nil {
			f.Children[e.Parent] = make(map[int64]bool)
		}
		f.Children[e.Parent][e.Child] = true
	}
}

func (f *Fold) drop(child int64) {
	for parent := range f.Edges[child] {
		delete(f.Children[parent], child)
		if len(f.Children[parent]) == 0 {
			delete(f.Children, parent)
		}
	}
	delete(f.Edges, child)
	delete(f.States, child)
}

// Table returns the rows that the tables should have after the last event. If a job has not yet learned of
// the end or the retry of a parent, its edges stay as they were before, and that parent is still to be
// resolved.
func (f *Fold) Table() (edges []Edge, parents []Resolving) {
	pending := make(map[int64]Resolving)
	for _, child := range slices.Sorted(maps.Keys(f.Edges)) {
		late := f.late(child)
		for _, parent := range slices.Sorted(maps.Keys(f.Edges[child])) {
			edge := f.Edges[child][parent]
			row := edge.Edge
			if late && parent != 0 && edge.unlearned(f.States[child]) {
				row.Broken = edge.Again
				p := pending[parent]
				pending[parent] = Resolving{Parent: parent, Heal: p.Heal || edge.Again}
			} else if edge.Met {
				continue
			}
			edges = append(edges, row)
		}
	}
	for _, parent := range slices.Sorted(maps.Keys(pending)) {
		parents = append(parents, pending[parent])
	}
	return edges, parents
}

// Write makes the tables what f has.
func (f *Fold) Write(ctx context.Context, tx *ledger.Tx) error {
	edges, resolving := f.Table()
	stored, err := All(ctx, tx)
	if err != nil {
		return err
	}
	pending, err := Pending(ctx, tx, 0)
	if err != nil || slices.Equal(edges, stored) && slices.Equal(resolving, pending) {
		return err
	}
	for _, all := range []string{`DELETE FROM deps`, `DELETE FROM resolving`} {
		if _, err := tx.Exec(all); err != nil {
			return err
		}
	}
	for _, e := range edges {
		if err := Add(tx, e); err != nil {
			return err
		}
	}
	for _, s := range resolving {
		if err := s.Postpone(tx); err != nil {
			return err
		}
	}
	return nil
}

// unlearned reports whether a child in this state that has not learned of something may not have learned of
// what became of this edge.
func (e *folded) unlearned(child event.State) bool {
	if child == event.Blocked {
		return (e.Met || e.Broken) && !e.Rerun
	}
	return e.Again
}

// late reports whether a job has not learned yet that it is to change its state.
func (f *Fold) late(child int64) bool {
	open, broken := f.count(child)
	if f.States[child] == event.Blocked {
		return broken > 0 || open == 0
	}
	return broken == 0
}

// Compare returns in what the tables differ from the fold. Edges from a parent that is resolved in steps may
// still be unchanged.
func (f *Fold) Compare(stored []Edge, resolving []Resolving) (differ []Difference) {
	lag := make(map[int64]bool)
	for _, s := range resolving {
		lag[s.Parent] = true
	}
	late := make(map[int64]bool)
	want := make(map[[2]int64]Edge)
	for child, edges := range f.Edges {
		late[child] = f.late(child)
		for parent, edge := range edges {
			late[child] = late[child] && !lag[parent]
			if !edge.Met {
				want[[2]int64{child, parent}] = edge.Edge
			}
		}
		if late[child] {
			differ = append(differ, Difference{child, fmt.Sprintf("it is %s, but not by what it waits for",
				f.States[child])})
		}
	}
	for _, e := range stored {
		key := [2]int64{e.Child, e.Parent}
		edge, ok := want[key]
		delete(want, key)
		switch {
		case ok && (edge == e || lag[e.Parent] && edge.On == e.On):
		case !ok && lag[e.Parent] && f.Edges[e.Child][e.Parent] != nil:
		case ok:
			differ = append(differ, Difference{e.Child, fmt.Sprintf("the table deps has its wait for %d as %s%s, the "+
				"events make it %s%s", e.Parent, e.On, orBroken(e), edge.On, orBroken(edge))})
		default:
			differ = append(differ, Difference{e.Child, fmt.Sprintf("the table deps says that it waits for %d, the "+
				"events do not", e.Parent)})
		}
	}
	for key := range want {
		if !lag[key[1]] {
			differ = append(differ, Difference{key[0],
				fmt.Sprintf("it waits for %d, and the table deps does not say so",
					key[1])})
		}
	}
	slices.SortFunc(differ, func(a, b Difference) int { return int(a.Child - b.Child) })
	return differ
}

// Difference is a job for which the table differs from the events.
type Difference struct {
	Child int64
	Text  string
}

func orBroken(e Edge) string {
	if e.Broken {
		return ", broken"
	}
	return ""
}
