package audit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
	"jobledger/projection/internal/table"
)

// evidence compares the stored hashes of blocks, and the seals, with the events.
type evidence struct {
	tree   proof.Frontier
	count  int64        // how many blocks have a stored hash
	first  int64        // the block of blocks[0]
	blocks []proof.Hash // stored hashes, a chunk of them
	seals  []tree.Seal
	keys   map[string]bool      // public keys and names that events of the kind sealing have named so far
	roots  map[int64]proof.Hash // by size: those that archived events name, once the tree is as large
	leaf   []byte
	part   []proof.Hash // the leaves of the next block, as far as it may have gaps
	from   int64        // the last pos that is hashed; beyond it nothing is to be compared
}

// blocksAtOnce is how many stored hashes of blocks are read at once.
const blocksAtOnce = 1024

// beginEvidence prepares to compare the blocks and seals after the event at Since.
func (v *verifier) beginEvidence(ctx context.Context) error {
	w := &evidence{keys: make(map[string]bool), roots: make(map[int64]proof.Hash)}
	var err error
	if w.count, err = tree.BlockCount(ctx, v.tx); err != nil {
		return err
	}
	w.from = w.count * proof.BlockSize
	var least sql.NullInt64
	if err := table.ScanOne(ctx, v.tx, `SELECT min(n) FROM blocks`, []any{&least}); err != nil {
		return err
	}
	if least.Int64 < 0 {
		v.find(Finding{Code: FindBlock, Field: "blocks",
			Detail: fmt.Sprintf("there is a block %d, and the first one is 0", least.Int64)})
	}
	n, first := int64(0), int64(0)
	for s, err := range tree.Seals(ctx, v.tx) {
		if errors.Is(err, ledger.ErrDamaged) {
			v.find(Finding{Code: FindSeal, Field: "seals", Detail: err.Error()})
			break
		}
		if err != nil {
			return err
		}
		if n++; s.N != n {
			v.find(Finding{Code: FindSeal, Field: "seals",
				Detail: fmt.Sprintf("seal %d of %d events should have the number %d", s.N, s.Size, n)})
		}
		if s.N == 1 {
			first = s.Size
		}
		if s.Size < 1 {
			v.find(Finding{Code: FindSeal, Field: "seals", Detail: fmt.Sprintf("seal %d of %d events is of none", s.N,
				s.Size)})
		} else if s.Size >= v.Since {
			w.seals = append(w.seals, s)
		}
		w.from = max(w.from, s.Size)
	}
	slices.SortStableFunc(w.seals, func(a, b tree.Seal) int { return cmp.Compare(a.Size, b.Size) })
	if err := cmp.Or(v.checkFirstSeal(ctx, first), v.beginArchive(ctx, w)); err != nil {
		return err
	}
	if w.from <= v.Since {
		return nil
	}
	if v.Since > 0 {
		ok, err := w.resume(ctx, v.tx, v.Since)
		if err != nil {
			return v.stop(v.Since, err)
		}
		if !ok {
			v.find(Finding{Code: FindBlock, Field: "blocks",
				Detail: fmt.Sprintf("blocks or events up to %d are missing, and nothing is compared", v.Since)})
			return nil
		}
	}
	v.evidence = w
	return v.checkSeals(w)
}

// checkFirstSeal compares the size of seal 1 with the event that it was recorded with. Events of older
// programs do not say that there was one.
func (v *verifier) checkFirstSeal(ctx context.Context, size int64) error {
	for e, err := range v.tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindSealing}}) {
		if errors.Is(err, ledger.ErrDamaged) { // which is found where it comes in order
			return nil
		}
		if err != nil {
			return err
		}
		if !e.Body.(*event.Sealing).Sealed {
			continue
		}
		if size != e.Pos {
			v.find(Finding{Code: FindSealGone, Field: "seals", Detail: fmt.Sprintf(
				"seal 1, of %d events, was recorded with event %d, and is not there", e.Pos, e.Pos)})
		}
		return nil
	}
	return nil
}

// resume makes the tree of the events up to since, which were verified, from their blocks and the events
// behind these; ok is false if some of these are missing.
func (w *evidence) resume(ctx context.Context, tx *ledger.Tx, since int64) (ok bool, err error) {
	whole := min(since/proof.BlockSize, w.count)
	for n := int64(0); n < whole; n += blocksAtOnce {
		list, err := tree.StoredBlocks(ctx, tx, n, min(n+blocksAtOnce, whole))
		if err != nil {
			return false, err
		}
		for _, h := range list {
			w.tree.AddBlock(h)
		}
	}
	for e, err := range tx.Events(ctx, ledger.Filter{After: whole * proof.BlockSize, Until: since}) {
		if err != nil {
			return false, err
		}
		w.leaf = e.AppendLeaf(w.leaf[:0])
		w.tree.Add(proof.LeafHash(w.leaf))
	}
	for e, err := range tx.Events(ctx, ledger.Filter{Kinds: []event.Kind{event.KindSealing}, Until: since}) {
		if err != nil {
			return false, err
		}
		w.named(e.Body.(*event.Sealing))
	}
	return w.tree.Size() == since, nil
}

func (w *evidence) named(b *event.Sealing) {
	w.keys[b.Origin] = true
	if b.Key != "" {
		w.keys[b.Key] = true
	}
}

// addLeaf adds the next event to the tree, and compares the block and the seals that end with it.
func (v *verifier) addLeaf(ctx context.Context, e *event.Event) error {
	w := v.evidence
	if w == nil || e.Pos > w.from {
		return nil
	}
	if b, ok := e.Body.(*event.Sealing); ok {
		w.named(b)
	}
	if e.Pos <= v.horizon || w.tree.Size() < v.horizon {
		if ok, err := v.pass(ctx, w, e.Pos); err != nil || !ok {
			return err
		}
	}
	if e.Pos != w.tree.Size()+int64(len(w.part))+1 { // a gap, which is a finding
		v.evidence = nil
		return nil
	}
	w.leaf = e.AppendLeaf(w.leaf[:0])
	leaf := proof.LeafHash(w.leaf)
	if e.Pos > v.horizon {
		return v.grow(ctx, w, leaf)
	}
	if w.part = append(w.part, leaf); len(w.part) < proof.BlockSize {
		return nil
	}
	for _, leaf := range w.part {
		if err := v.grow(ctx, w, leaf); err != nil {
			return err
		}
	}
	w.part = w.part[:0]
	return nil
}

// grow adds a leaf to the tree, and compares the block and the seals that end with it.
func (v *verifier) grow(ctx context.Context, w *evidence, leaf proof.Hash) error {
	if block, whole := w.tree.Add(leaf); whole {
		if err := v.compareBlock(ctx, w.tree.Size()/proof.BlockSize-1, block); err != nil {
			return err
		}
	}
	w.keepRoot()
	return v.checkSeals(w)
}

// pass prepares the tree for the event at pos, before which others may have left the ledger. Blocks of which
// events have left are taken as they are stored; the seals within them are not compared. ok is false if a
// block is not there.
func (v *verifier) pass(ctx context.Context, w *evidence, pos int64) (ok bool, err error) {
	if pos-1 == w.tree.Size()+int64(len(w.part)) {
		return true, nil
	}
	to := min((pos-1)/proof.BlockSize*proof.BlockSize, v.horizon)
	if w.tree.Size() < to {
		w.part = w.part[:0]
	}
	for w.tree.Size() < to {
		n := w.tree.Size() / proof.BlockSize
		stored, ok, err := v.storedBlock(ctx, n)
		if err != nil {
			return false, err
		}
		if !ok {
			v.find(Finding{Code: FindBlock, Field: "blocks", Detail: fmt.Sprintf(
				"the block %d, of which events have left the ledger, is not there", n)})
			v.evidence = nil
			return false, nil
		}
		for len(w.seals) > 0 && w.seals[0].Size > w.tree.Size() && w.seals[0].Size < w.tree.Size()+proof.BlockSize {
			w.seals = w.seals[1:]
		}
		w.tree.AddBlock(stored)
		w.keepRoot()
		if err := v.checkSeals(w); err != nil {
			return false, err
		}
	}
	// If the block of the event has gaps, it is passed as a whole later.
	return pos > v.horizon || pos-1 == w.tree.Size()+int64(len(w.part)), nil
}

// compareBlock compares the hash of block n with the stored one. If they differ, the tree goes on with the
// stored one, so that one change is one finding.
func (v *verifier) compareBlock(ctx context.Context, n int64, block proof.Hash) error {
	w := v.evidence
	stored, ok, err := v.storedBlock(ctx, n)
	if err != nil || !ok {
		return err
	}
	if stored != block {
		v.find(Finding{Code: FindBlock, Field: "blocks",
			Detail: fmt.Sprintf("the events %d to %d are not those that block %d was computed from", n*proof.BlockSize+
				1,
				(n+1)*proof.BlockSize, n)})
		w.tree.ReplaceBlock(stored)
	}
	return nil
}

// storedBlock returns the stored hash of block n; ok is false if there is none.
func (v *verifier) storedBlock(ctx context.Context, n int64) (stored proof.Hash, ok bool, err error) {
	w := v.evidence
	if n >= w.count {
		return stored, false, nil
	}
	if n < w.first || n >= w.first+int64(len(w.blocks)) {
		list, err := tree.StoredBlocks(ctx, v.tx, n, min(n+blocksAtOnce, w.count))
		if errors.Is(err, ledger.ErrDamaged) || err == nil && len(list) == 0 {
			v.find(Finding{Code: FindBlock, Field: "blocks",
				Detail: fmt.Sprintf("the hashes of the blocks from %d on cannot be read, or are not there", n)})
			w.count = n
			return stored, false, nil
		}
		if err != nil {
			return stored, false, err
		}
		w.first, w.blocks = n, list
	}
	return w.blocks[n-w.first], true, nil
}

// checkSeals compares the seals of as many events as there are in the tree.
func (v *verifier) checkSeals(w *evidence) error {
	for len(w.seals) > 0 && w.seals[0].Size <= w.tree.Size() {
		s := w.seals[0]
		w.seals = w.seals[1:]
		if why := w.wrong(s); why != "" {
			v.find(Finding{Code: FindSeal, Field: "seals", Detail: fmt.Sprintf("seal %d of %d events: %s", s.N, s.Size,
				why)})
		}
	}
	return nil
}

// wrong says what is wrong with the seal of all events in the tree; "" if nothing is.
func (w *evidence) wrong(s tree.Seal) string {
	if root := w.tree.Root(); s.Root != root {
		return fmt.Sprintf("its root is %s, but the root of the events up to there is %s", s.Root, root)
	}
	if s.Note == "" {
		return ""
	}
	c, err := proof.ParseCheckpoint([]byte(s.Note))
	switch {
	case err != nil:
		return err.Error()
	case c.Size != s.Size || c.Root != s.Root:
		return "its checkpoint is of another size or root"
	case !w.keys[c.Origin]:
		return fmt.Sprintf("its checkpoint is of %s, a name that no sealing had given", c.Origin)
	}
	return w.wrongSignature(s.Note)
}

// wrongSignature checks that a signed checkpoint is signed with a key that an event named, if one did.
func (w *evidence) wrongSignature(note string) string {
	keys, signed := w.publicKeys(), len(note) > 1 && note[len(note)-2:] != "\n\n"
	if !signed || len(keys) == 0 {
		return ""
	}
	for _, key := range keys {
		if _, err := proof.ParseCheckpoint([]byte(note), key); err == nil {
			return ""
		}
	}
	return "its checkpoint is not signed with a key that a sealing had named"
}

func (w *evidence) publicKeys() (keys []string) {
	for key := range w.keys {
		if proof.CheckKey(key) == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// endEvidence reports blocks and seals of events that are not there.
func (v *verifier) endEvidence(ctx context.Context) error {
	w := v.evidence
	if w == nil {
		return nil
	}
	if w.tree.Size() < v.horizon && v.last.Pos >= v.horizon {
		if ok, err := v.pass(ctx, w, v.horizon+1); err != nil || !ok {
			return err
		}
	}
	if size := w.tree.Size(); w.count > size/proof.BlockSize {
		v.find(Finding{Code: FindBlock, Field: "blocks", Detail: fmt.Sprintf(
			"%d events were sealed in blocks, and there are %d", w.count*proof.BlockSize, size)})
	}
	for _, s := range w.seals {
		v.find(Finding{Code: FindSeal, Field: "seals",
			Detail: fmt.Sprintf("seal %d is of %d events, and there are %d",
				s.N, s.Size, w.tree.Size())})
	}
	return nil
}
