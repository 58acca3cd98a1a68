package audit

import (
	"context"
	"fmt"

	"jobledger/ledger"
	"jobledger/projection/audit/differ"
	"jobledger/projection/group"
)

// groupRows reports the rows of group_heads that differ.
func (v *verifier) groupRows(ctx context.Context) error {
	differing, err := differ.Heads(ctx, v.tx, v.fold, v.Since == 0, v.horizon, v.Until)
	for _, d := range differing {
		base, name, _ := group.Split(d.Lane)
		v.find(Finding{Code: FindGroup, Field: d.Field,
			Detail: fmt.Sprintf("group %q of the queue %s: %s", name, group.QueueOf(base), d.Detail)})
	}
	return err
}

// groups corrects the rows of group_heads. Those whose last claim came after the plan keep it.
func (r *Rebuilt) groups(ctx context.Context, tx *ledger.Tx, s *RebuildPlan) error {
	differing, err := differ.Heads(ctx, tx, s.fold, true, s.fold.Gaps.Horizon, s.until)
	if err != nil {
		return err
	}
	for i, d := range differing {
		if i > 0 && d.Lane == differing[i-1].Lane {
			continue // another column of the same row
		}
		r.Groups++
		if d.Extra || d.Got.Queue != d.Want.Queue && !d.Missing {
			err = group.DeleteAny(tx, d.Got)
		}
		if err == nil && !d.Extra {
			err = group.Put(ctx, tx, d.Want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeGroups writes the rows of group_heads of a history that was loaded.
func (l *Loader) writeGroups(ctx context.Context) error {
	if len(l.fold.Groups) == 0 {
		return nil
	}
	differing, err := differ.Heads(ctx, l.tx, l.fold, true, 0, l.events)
	for _, d := range differing {
		if err == nil && d.Missing {
			err = group.Put(ctx, l.tx, d.Want)
		}
	}
	return err
}
