package prove

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
)

// Verdict is what a ledger is in comparison with a checkpoint.
type Verdict string

// The verdicts. All but Same are discrepancies.
const (
	Same    Verdict = "same"    // its first events are those of the checkpoint
	Differs Verdict = "differs" // at least one of these events is another
	Shorter Verdict = "shorter" // it has fewer events
	Foreign Verdict = "foreign" // it has never had the name that the checkpoint says
)

// Compared is a ledger in comparison with a checkpoint.
type Compared struct {
	Verdict    Verdict
	Checkpoint proof.Checkpoint
	Events     int64      // that the ledger has
	Root       proof.Hash // of the ledger's events up to the checkpoint's size; of all, where it is Shorter
	Restored   *Restored  // the restore that explains a difference; nil: none does
}

// String describes the difference in one sentence without its full stop.
func (c Compared) String() string {
	what := fmt.Sprintf("the checkpoint of %d events of %s", c.Checkpoint.Size, c.Checkpoint.Origin)
	text := ""
	switch c.Verdict {
	case Same:
		return what + " holds"
	case Foreign:
		return what + ": this ledger has never had that name"
	case Shorter:
		text = fmt.Sprintf("%s: the ledger has only %d", what, c.Events)
	case Differs:
		text = fmt.Sprintf("%s: its root is %s, but that of the ledger's first %s is %s", what,
			c.Checkpoint.Root, words.Count(c.Checkpoint.Size, "event"), c.Root)
	}
	if c.Restored != nil {
		text += "; " + c.Restored.String()
	}
	return text
}

// Same reports whether the ledger's first events are those of the checkpoint.
func (c Compared) Same() bool { return c.Verdict == Same }

// Restored is an event restored that replaced a ledger with as many events as a checkpoint.
type Restored struct {
	Pos   int64     `json:"pos"`
	At    time.Time `json:"at"`
	Actor string    `json:"actor"`
	From  string    `json:"from"`      // the backup
	Head  int64     `json:"head_size"` // how many events the ledger had that was replaced
	// the checkpoint covers all these events, and its root is the one in the event
	Exact bool `json:"exact"`
}

// String describes the restore in one sentence without its full stop.
func (r Restored) String() string {
	text := fmt.Sprintf("event %d explains it: %s restored %s over a ledger of %d events", r.Pos, r.Actor,
		r.From,
		r.Head)
	if r.Exact {
		text += " with this root"
	}
	return text
}

// Compare compares the ledger of tx with c. It trusts the stored hashes of blocks; package audit checks them
// against the events. Errors: those of package tree.
func Compare(ctx context.Context, tx *ledger.Tx, c proof.Checkpoint) (Compared, error) {
	a, err := CompareAll(ctx, tx, []proof.Checkpoint{c}, ByBlocks)
	if err != nil {
		return Compared{}, err
	}
	return a.Compared[0], nil
}

// judge compares c with a ledger of so many events. root is its root at the size of c, or of all its events
// if these are fewer.
func judge(c proof.Checkpoint, events int64, root proof.Hash, names []string) Compared {
	one := Compared{Checkpoint: c, Events: events, Root: root, Verdict: Same}
	switch {
	case !slices.Contains(names, c.Origin):
		one.Verdict = Foreign
	case c.Size > events:
		one.Verdict = Shorter
	case c.Root != root:
		one.Verdict = Differs
	}
	return one
}

// named returns the names that the ledger has had, and the public keys that it has named.
func named(ctx context.Context, tx *ledger.Tx) (names, keys []string, err error) {
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindSealing}}) {
		if err != nil {
			return nil, nil, err
		}
		b := e.Body.(*event.Sealing)
		if names = append(names, b.Origin); b.Key != "" {
			keys = append(keys, b.Key)
		}
	}
	return names, keys, nil
}

// explain returns the event restored that replaced a ledger with the events of c: the one that matches
// exactly, or else the last one that may. It returns nil if there is none.
func explain(ctx context.Context, tx *ledger.Tx, c proof.Checkpoint) (r *Restored, err error) {
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindRestored}}) {
		if err != nil {
			return nil, err
		}
		b := e.Body.(*event.Restored)
		exact := b.HeadRoot == base64.StdEncoding.EncodeToString(c.Root[:])
		if c.Size < e.Pos || c.Size > b.HeadSize || c.Size == b.HeadSize && !exact {
			continue
		}
		r = &Restored{Pos: e.Pos, At: e.At, Actor: e.Actor, From: b.From, Head: b.HeadSize,
			Exact: c.Size == b.HeadSize}
		if r.Exact {
			return r, nil
		}
	}
	return r, nil
}

// Against is a ledger in comparison with several checkpoints.
type Against struct {
	Compared []Compared // in the order given
	// The events from From to To are those among which the first difference is: up to From-1 a checkpoint
	// is the Same, and at To one Differs or the ledger has ended. Both are 0 where there is no difference.
	From, To int64
}

// Basis is the part of a ledger that is compared with checkpoints.
type Basis int

// ByBlocks trusts the stored hashes of blocks. ByEvents hashes every event, for when the blocks are not
// theirs.
const (
	ByBlocks Basis = iota
	ByEvents
)

// CompareAll compares the ledger of tx with every one of list, in one pass over the blocks or events.
func CompareAll(ctx context.Context, tx *ledger.Tx, list []proof.Checkpoint, by Basis) (a Against,
	err error) {
	open := tree.New
	if by == ByEvents {
		open = tree.OfEvents
	}
	t, err := open(ctx, tx, nil)
	if err != nil {
		return a, err
	}
	names, _, err := named(ctx, tx)
	if err != nil {
		return a, err
	}
	var sizes []int64
	for _, c := range list {
		sizes = append(sizes, min(c.Size, t.Size()))
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	roots, err := t.Roots(ctx, sizes)
	if err != nil {
		return a, err
	}
	for _, c := range list {
		n, _ := slices.BinarySearch(sizes, min(c.Size, t.Size()))
		one := judge(c, t.Size(), roots[n], names)
		if one.Verdict == Differs || one.Verdict == Shorter {
			if one.Restored, err = explain(ctx, tx, c); err != nil {
				return a, err
			}
		}
		a.Compared = append(a.Compared, one)
	}
	a.narrow()
	return a, nil
}

// Unrecorded returns how many of the checkpoints that hold the ledger has no record of handing out: they were
// only printed, or seals were deleted, or left behind by an import.
func (a Against) Unrecorded(ctx context.Context, tx *ledger.Tx) (n int64, err error) {
	recorded := make(map[proof.Hash]bool)
	for s, err := range tree.Seals(ctx, tx) {
		if err != nil && !errors.Is(err, ledger.ErrDamaged) { // which is for package audit to find
			return 0, err
		}
		if s.Note != "" {
			recorded[s.Root] = true
		}
	}
	for _, one := range a.Compared {
		if one.Same() && !recorded[one.Checkpoint.Root] {
			n++
		}
	}
	return n, nil
}

// narrow finds the events among which the first difference is.
func (a *Against) narrow() {
	for _, one := range a.Compared {
		if one.Verdict == Differs && (a.To == 0 || one.Checkpoint.Size < a.To) {
			a.To = one.Checkpoint.Size
		}
		if one.Verdict == Shorter && (a.To == 0 || one.Events+1 < a.To) {
			a.To = one.Events + 1
		}
	}
	if a.To == 0 {
		return
	}
	a.From = 1
	for _, one := range a.Compared {
		if one.Same() && one.Checkpoint.Size < a.To {
			a.From = max(a.From, one.Checkpoint.Size+1)
		}
	}
}

// AllSame reports whether every checkpoint holds.
func (a Against) AllSame() bool {
	return !slices.ContainsFunc(a.Compared, func(c Compared) bool { return !c.Same() })
}
