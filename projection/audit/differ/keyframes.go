package differ

import (
	"context"
	"errors"
	"math"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/keyframe"
)

// Keyframes compares the table keyframes with the events as these are folded. A nil Keyframes compares
// nothing.
type Keyframes struct {
	Tx    *ledger.Tx
	frame *keyframe.Frame
	next  keyframe.Stored // the first keyframe at or after frame
	more  bool            // there is one: without, nothing is counted
	Wrong []int64         // the keyframes that are not what the events make
}

// KeyframesSince prepares for the events after since, up to which the keyframes were found right.
func KeyframesSince(ctx context.Context, tx *ledger.Tx, since int64) (k *Keyframes, err error) {
	k = &Keyframes{Tx: tx}
	before := since
	if since == 0 {
		before = math.MinInt64
	}
	if err := k.find(ctx, before); err != nil || !k.more {
		return k, err
	}
	for k.more && k.next.Pos <= 0 {
		k.Wrong = append(k.Wrong, k.next.Pos)
		if err := k.find(ctx, k.next.Pos); err != nil {
			return k, err
		}
	}
	if k.frame = keyframe.New(); since == 0 {
		return k, nil
	}
	f, err := keyframe.At(ctx, tx, since)
	if errors.Is(err, ledger.ErrDamaged) { // it was not, when it was verified
		k.Wrong = append(k.Wrong, since)
		return k, k.frame.Advance(ctx, tx, since)
	}
	k.frame = f
	return k, err
}

// find reads the first keyframe after pos.
func (k *Keyframes) find(ctx context.Context, pos int64) (err error) {
	k.next, k.more, err = keyframe.Next(ctx, k.Tx, pos)
	return err
}

// Add adds the next event, of job j; nil if it concerns none.
func (k *Keyframes) Add(ctx context.Context, e *event.Event, j *projection.Job) error {
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
		k.Wrong = append(k.Wrong, k.next.Pos)
	}
	return k.find(ctx, k.next.Pos)
}

// End reports the keyframes after the last event too.
func (k *Keyframes) End(ctx context.Context) error {
	for k.more {
		k.Wrong = append(k.Wrong, k.next.Pos)
		if err := k.find(ctx, k.next.Pos); err != nil {
			return err
		}
	}
	return nil
}
