package audit

import (
	"context"
	"fmt"

	"jobledger/projection"
	"jobledger/projection/audit/differ"
	"jobledger/projection/group"
)

// beginKeyframes prepares to check the keyframes after since.
func (v *verifier) beginKeyframes(ctx context.Context) (err error) {
	if v.frames, err = differ.KeyframesSince(ctx, v.tx, v.Since); err != nil {
		return v.stop(v.Since, err)
	}
	return nil
}

// keyframes reports the wrong keyframes.
func (v *verifier) keyframes(ctx context.Context) error {
	if v.frames == nil {
		return nil
	}
	err := v.frames.End(ctx)
	for _, pos := range v.frames.Wrong {
		v.find(Finding{Code: FindKeyframe, Pos: pos, Field: "keyframes",
			Detail: fmt.Sprintf("the keyframe %d is not what the events up to it add up to", pos)})
	}
	return err
}

// dependencies compares the table deps with the fold.
func (v *verifier) dependencies(ctx context.Context) error {
	if v.fold.Deps == nil {
		return nil
	}
	differing, err := differ.Dependencies(ctx, v.tx, v.fold.Deps)
	for _, d := range differing {
		f := Finding{Code: FindDependency, Field: "deps", Detail: d.Text}
		if f.Job, err = projection.IDOf(ctx, v.tx, d.Child); err != nil {
			return err
		}
		v.find(f)
	}
	return err
}

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
