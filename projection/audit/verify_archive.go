package audit

import (
	"context"
	"errors"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/proof"
	"jobledger/ledger/tree"
)

// beginArchive finds out what had been archived by the event at Since, and which roots later events name, so
// that the tree is computed that far; w is nil where it is not. An event that cannot be read is reported
// later.
func (v *verifier) beginArchive(ctx context.Context, w *evidence) error {
	f := ledger.Filter{Kinds: []event.Kind{event.KindArchived, event.KindArchiveDescribed}}
	for e, err := range v.tx.Events(ctx, f) {
		if _, damaged := errors.AsType[*ledger.EventError](err); damaged {
			return nil
		}
		if err != nil {
			return err
		}
		b, ok := e.Body.(*event.Archived)
		if !ok {
			if e.Pos <= v.Since {
				delete(v.undescribed, e.Body.(*event.ArchiveDescribed).Hi)
			}
			continue
		}
		if e.Pos <= v.Since {
			v.archivedTo = max(v.archivedTo, b.Hi)
			v.undescribed[b.Hi] = len(b.Parts) == 0
		} else if w != nil && b.Hi < e.Pos && b.Hi >= v.Since {
			w.roots[b.Hi] = proof.Hash{}
			w.from = max(w.from, b.Hi)
		}
	}
	return nil
}

// keepRoot keeps the root of the events so far if an archived event names it.
func (w *evidence) keepRoot() {
	if _, wanted := w.roots[w.tree.Size()]; wanted {
		w.roots[w.tree.Size()] = w.tree.Root()
	}
}

// archived checks the range and the root that e names. The root is compared with the one of the events, where
// the tree is computed: see beginEvidence. Otherwise it is compared with the root of the stored blocks, if
// there are any.
func (v *verifier) archived(ctx context.Context, e *event.Event, b *event.Archived) error {
	v.undescribed[b.Hi] = len(b.Parts) == 0
	if b.Lo != v.archivedTo || b.Hi <= b.Lo || b.Hi >= e.Pos {
		v.at(e, FindArchived, "it says that the events %d to %d were archived, after those up to %d", b.Lo+1, b.Hi,
			v.archivedTo)
		v.archivedTo = max(v.archivedTo, min(b.Hi, e.Pos-1))
		return nil
	}
	v.archivedTo = b.Hi
	var root proof.Hash
	if v.evidence != nil {
		root = v.evidence.roots[b.Hi]
	}
	if root == (proof.Hash{}) {
		var err error
		if root, err = v.storedRoot(ctx, b.Hi); err != nil {
			return err
		}
	}
	if root != (proof.Hash{}) && root.String() != b.Root {
		v.at(e, FindArchived, "it names the root %s of the events up to %d, which is %s", b.Root, b.Hi, root)
	}
	return nil
}

// described checks that e describes a file that nothing has described yet.
func (v *verifier) described(e *event.Event, b *event.ArchiveDescribed) {
	if !v.undescribed[b.Hi] {
		v.at(e, FindArchived, "it describes the file up to the event %d, and no event before names one that was "+
			"not described", b.Hi)
	}
	delete(v.undescribed, b.Hi)
}

// storedRoot returns the root over the events up to hi that the stored blocks make; zero if they are not
// there.
func (v *verifier) storedRoot(ctx context.Context, hi int64) (root proof.Hash, err error) {
	count := hi / proof.BlockSize
	blocks, err := tree.StoredBlocks(ctx, v.tx, 0, count)
	if errors.Is(err, ledger.ErrDamaged) || err == nil && int64(len(blocks)) != count {
		return root, nil // another finding says so
	}
	if err != nil {
		return root, err
	}
	return proof.NewTree(proof.Blocks(blocks)).Root(count * proof.BlockSize)
}
