package commands_test

import (
	"testing"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection/keyframe"
)

// TestSweepAddsKeyframes: a sweep adds the keyframes that are due, up to the end of the ledger, and the next
// one adds none.
func TestSweepAddsKeyframes(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	const jobs = 2*keyframe.Every + 100
	list := make([]commands.Enqueue, 512)
	for i := range list {
		list[i] = commands.Enqueue{Queue: "mail"}
	}
	for n := 0; n < jobs; n += len(list) {
		if _, err := q.Service.Enqueue(t.Context(), "cli:test", list[:min(len(list), jobs-n)]...); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		q.sweep()
		var open, frames int
		err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			for pos := int64(0); ; frames++ {
				s, more, err := keyframe.Next(t.Context(), tx, pos)
				if err != nil || !more {
					return err
				}
				pos = s.Pos
				f, err := keyframe.At(t.Context(), tx, pos)
				if err != nil {
					return err
				}
				open = len(f.Open())
			}
		})
		if err != nil || frames != 2 || open != 2*keyframe.Every {
			t.Errorf("%d keyframes, %d jobs open at the last, %v; want 2 and %d", frames, open, err, 2*keyframe.Every)
		}
	}
}
