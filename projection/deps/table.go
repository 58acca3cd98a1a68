package deps

import (
	"cmp"
	"context"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection/internal/table"
)

// Edge is one thing that a job waits for.
type Edge struct {
	Parent int64        // the number of the job that is waited for; 0: a hold
	Child  int64        // the number of the job that waits
	On     event.Ending // 0: a hold
	Broken bool         // the parent has ended in another way
}

// Waiting is an edge of a parent, with the facts that decide the next state of the child.
type Waiting struct {
	Edge
	State        event.State // of the child
	OthersOpen   bool        // the child has other edges that are open
	OthersBroken bool        // the child has other edges that are broken
}

// Resolving is a parent of which some children have not learned of its state yet.
type Resolving struct {
	Parent int64
	Child  int64 // up to this number they have
	Heal   bool  // broken edges are looked at too
}

var (
	insertEdge = ledger.NewSparseInsert("deps", nil, "parent", "child", "ending", "broken")
	putPending = ledger.NewUpsert("resolving", "parent", nil, "parent", "child", "heal")
)

// Add adds an edge, which must not be there.
func Add(tx *ledger.Tx, e Edge) error {
	tx.NoteDependencies()
	return tx.Insert(insertEdge, e.Parent, e.Child, int64(e.On), number(e.Broken))
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

const (
	ofChild     = `SELECT parent, child, ending, broken FROM deps WHERE child = ? ORDER BY parent LIMIT ?`
	ofChildLate = `SELECT d.parent, d.ending, j.state
FROM resolving r JOIN deps d ON d.parent = r.parent JOIN jobs j ON j.n = r.parent
WHERE d.child = ? AND d.broken = 0 ORDER BY d.parent`
	held     = `SELECT COUNT(*), COALESCE(MIN(child), 0) FROM deps WHERE parent = 0 AND child <= ?`
	allEdges = `SELECT parent, child, ending, broken FROM deps ORDER BY child, parent`
	ofParent = `SELECT d.child, d.ending, d.broken, j.state,
    CASE WHEN EXISTS (SELECT 1 FROM deps o WHERE o.child = d.child AND o.broken = 0 AND o.parent <> d.parent)
        THEN 1 ELSE 0 END,
    CASE WHEN EXISTS (SELECT 1 FROM deps o WHERE o.child = d.child AND o.broken = 1 AND o.parent <> d.parent)
        THEN 1 ELSE 0 END
FROM deps d JOIN jobs j ON j.n = d.child
WHERE d.parent = ? AND d.child > ? AND d.broken <= ? ORDER BY d.child LIMIT ?`
)

// Held returns how many jobs are held whose numbers are at most upTo, and the least of their numbers.
func Held(ctx context.Context, tx *ledger.Tx, upTo int64) (jobs, first int64, err error) {
	err = table.ScanOne(ctx, tx, held, []any{&jobs, &first}, upTo)
	return jobs, first, err
}

// Of returns up to limit of the edges of a child.
func Of(ctx context.Context, tx *ledger.Tx, child int64, limit int) ([]Edge, error) {
	return edges(ctx, tx, ofChild, child, limit)
}

// All returns every edge, in the order of children and parents.
func All(ctx context.Context, tx *ledger.Tx) ([]Edge, error) { return edges(ctx, tx, allEdges) }

func edges(ctx context.Context, tx *ledger.Tx, query string, args ...any) (found []Edge, err error) {
	rows, err := tx.QueryState(ctx, query, args...)
	var e Edge
	var broken int64
	err = table.Each(rows, err, []any{&e.Parent, &e.Child, &e.On, &broken}, func() error {
		e.Broken = broken != 0
		found = append(found, e)
		return nil
	})
	return found, err
}

// Next returns up to limit of the edges that s has not resolved, in the order of their children: the open
// ones, and with Heal the broken ones too.
func (s Resolving) Next(ctx context.Context, tx *ledger.Tx, limit int) (found []Waiting, err error) {
	rows, err := tx.QueryState(ctx, ofParent, s.Parent, s.Child, number(s.Heal), limit)
	w := Waiting{Edge: Edge{Parent: s.Parent}}
	var broken, open, others int64
	into := []any{&w.Child, &w.On, &broken, &w.State, &open, &others}
	err = table.Each(rows, err, into, func() error {
		w.Broken, w.OthersOpen, w.OthersBroken = broken != 0, open != 0, others != 0
		found = append(found, w)
		return nil
	})
	return found, err
}

var (
	removeSome = `DELETE FROM deps WHERE parent = ? AND child IN (` + table.Placeholders(table.Chunk) + `)`
	markSome   = `UPDATE deps SET broken = ? WHERE parent = ? AND child IN (` +
		table.Placeholders(table.Chunk) + `)`
)

// Remove removes the edges from a parent to some children.
func Remove(tx *ledger.Tx, parent int64, children []int64) error {
	for chunk := range table.Chunks(children) {
		if _, err := tx.Exec(removeSome, append([]any{parent}, chunk...)...); err != nil {
			return err
		}
	}
	return nil
}

// Mark says of the edges from a parent to some children whether they are broken.
func Mark(tx *ledger.Tx, parent int64, broken bool, children []int64) error {
	for chunk := range table.Chunks(children) {
		if _, err := tx.Exec(markSome, append([]any{number(broken), parent}, chunk...)...); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes all edges of a child: it waits for nothing any more.
func Drop(tx *ledger.Tx, child int64) error {
	_, err := tx.Exec(`DELETE FROM deps WHERE child = ?`, child)
	return err
}

// Lift removes the hold of a child.
func Lift(tx *ledger.Tx, child int64) error { return Remove(tx, 0, []int64{child}) }

// Late is what has become of the parents of a child that are resolved in steps, and of which the child has
// not learned.
type Late struct {
	child       int64
	met, broken []int64 // parents
}

// LateOf returns what a child has not learned of.
func LateOf(ctx context.Context, tx *ledger.Tx, child int64) (l Late, err error) {
	l.child = child
	rows, err := tx.QueryState(ctx, ofChildLate, child)
	var e Edge
	var state event.State
	err = table.Each(rows, err, []any{&e.Parent, &e.On, &state}, func() error {
		switch {
		case e.On.Meets(state):
			l.met = append(l.met, e.Parent)
		case state.Final():
			l.broken = append(l.broken, e.Parent)
		}
		return nil
	})
	return l, err
}

// Met returns the parents that have ended as the child waits for it.
func (l Late) Met() []int64 { return l.met }

// RemoveMet removes the edges that are met, and reports whether there were any.
func (l Late) RemoveMet(tx *ledger.Tx) (changed bool, err error) {
	for _, parent := range l.met {
		if err := Remove(tx, parent, []int64{l.child}); err != nil {
			return false, err
		}
	}
	return len(l.met) > 0, nil
}

// MarkBroken marks the broken edges, except the one from one parent, and reports whether there were any. The
// child must have ended.
func (l Late) MarkBroken(tx *ledger.Tx, but int64) (changed bool, err error) {
	for _, parent := range l.broken {
		if parent == but {
			continue
		}
		if err := Mark(tx, parent, true, []int64{l.child}); err != nil {
			return false, err
		}
		changed = true
	}
	return changed, nil
}

const resolving = `SELECT parent, child, heal FROM resolving`

// Pending returns up to limit of the parents that are resolved in steps; 0: all of them.
func Pending(ctx context.Context, tx *ledger.Tx, limit int) ([]Resolving, error) {
	limit = cmp.Or(limit, 1<<30)
	return pending(ctx, tx, resolving+` ORDER BY parent LIMIT ?`, limit)
}

// PendingOf returns what is left to resolve of a parent; the zero Resolving if nothing is.
func PendingOf(ctx context.Context, tx *ledger.Tx, parent int64) (s Resolving, err error) {
	found, err := pending(ctx, tx, resolving+` WHERE parent = ?`, parent)
	if len(found) > 0 {
		s = found[0]
	}
	return s, err
}

func pending(ctx context.Context, tx *ledger.Tx, query string, args ...any) (found []Resolving, err error) {
	rows, err := tx.QueryState(ctx, query, args...)
	var s Resolving
	var heal int64
	err = table.Each(rows, err, []any{&s.Parent, &s.Child, &heal}, func() error {
		s.Heal = heal != 0
		found = append(found, s)
		return nil
	})
	return found, err
}

// Postpone leaves s to a sweeper.
func (s Resolving) Postpone(tx *ledger.Tx) error {
	return tx.Put(putPending, s.Parent, s.Child, number(s.Heal))
}

// Resolved says that nothing is left to resolve of a parent.
func Resolved(tx *ledger.Tx, parent int64) error {
	_, err := tx.Exec(`DELETE FROM resolving WHERE parent = ?`, parent)
	return err
}
