package audit

import (
	"context"
	"errors"
	"fmt"
	"math"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/keyframe"
)

// keyframes compares the table keyframes with the events as these are folded.
type keyframes struct {
	tx    *ledger.Tx
	frame *keyframe.Frame
	next  keyframe.Stored // the first keyframe at or after frame
	more  bool            // there is one: without, nothing is counted
	wrong []int64         // the keyframes that are not what the events make
}

// keyframesSince prepares for the events after since, up to which the keyframes were found right.
func keyframesSince(ctx context.Context, tx *ledger.Tx, since int64) (k *keyframes, err error) {
	k = &keyframes{tx: tx}
	before := since
	if since == 0 {
		before = math.MinInt64
	}
	if err := k.find(ctx, before); err != nil || !k.more {
		return k, err
	}
	for k.more && k.next.Pos <= 0 {
		k.wrong = append(k.wrong, k.next.Pos)
		if err := k.find(ctx, k.next.Pos); err != nil {
			return k, err
		}
	}
	if k.frame = keyframe.New(); since == 0 {
		return k, nil
	}
	f, err := keyframe.At(ctx, tx, since)
	if errors.Is(err, ledger.ErrDamaged) { // it was not, when it was verified
		k.wrong = append(k.wrong, since)
		return k, k.frame.Advance(ctx, tx, since)
	}
	k.frame = f
	return k, err
}

// find reads the first keyframe after pos.
func (k *keyframes) find(ctx context.Context, pos int64) (err error) {
	k.next, k.more, err = keyframe.Next(ctx, k.tx, pos)
	return err
}

// add adds the next event, of job j; nil if it concerns none.
func (k *keyframes) add(ctx context.Context, e *event.Event, j *projection.Job) error {
	if k == nil || !k.more {
		return nil
	}
	if e.Seq != 0 && j != nil {
		k.frame.Add(e.N, e.From, e.To, j.Queue)
	}
	if e.Pos < k.next.Pos {
		return nil
	}
	k.frame.Pos = e.Pos
	if !k.next.Equal(k.frame.Stored()) {
		k.wrong = append(k.wrong, k.next.Pos)
	}
	return k.find(ctx, k.next.Pos)
}

// end reports the keyframes after the last event too.
func (k *keyframes) end(ctx context.Context) error {
	for k.more {
		k.wrong = append(k.wrong, k.next.Pos)
		if err := k.find(ctx, k.next.Pos); err != nil {
			return err
		}
	}
	return nil
}

// beginKeyframes prepares to check the keyframes after since.
func (v *verifier) beginKeyframes(ctx context.Context) (err error) {
	if v.frames, err = keyframesSince(ctx, v.tx, v.Since); err != nil {
		return v.stop(v.Since, err)
	}
	return nil
}

// keyframes reports the wrong keyframes.
func (v *verifier) keyframes(ctx context.Context) error {
	if v.frames == nil {
		return nil
	}
	err := v.frames.end(ctx)
	for _, pos := range v.frames.wrong {
		v.find(Finding{Code: FindKeyframe, Pos: pos, Field: "keyframes",
			Detail: fmt.Sprintf("the keyframe %d is not what the events up to it add up to", pos)})
	}
	return err
}
