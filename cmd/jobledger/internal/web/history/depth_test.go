package history

import (
	"math"
	"slices"
	"testing"

	"jobledger/cmd/jobledger/internal/nighttest"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/keyframe"
)

// The depth is the same whether it is counted from event to event or read at each point, and its last point
// is that of the series.
func TestDepthByEventsAndByPoints(t *testing.T) {
	s := nighttest.Import(t)
	if _, err := keyframe.Extend(t.Context(), s.Store, 500); err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for _, window := range [][2]int64{{0, math.MaxInt64}, {1500, 3100}, {2000, 2001}} {
			from, err := projection.AtPos(t.Context(), tx, window[0])
			if err != nil {
				return err
			}
			to, err := projection.AtPos(t.Context(), tx, window[1])
			if err != nil {
				return err
			}
			if window[0] == 0 {
				if from, err = projection.AtTime(t.Context(), tx, to.At.AddDate(0, 0, -1)); err != nil {
					return err
				}
			}
			for _, queue := range []string{"", "mail", "render", "nothing"} {
				for _, points := range []int{1, 7, 100} {
					span := Span{From: from, To: to, Queue: queue, Columns: points}
					got, err := ReadDepth(t.Context(), tx, span)
					if err != nil {
						return err
					}
					read := Depths{At: got.At, Queued: make([]int64, points), Held: make([]int64, points)}
					if err := read.byPoints(t.Context(), tx, span); err != nil {
						return err
					}
					if !slices.Equal(got.Queued, read.Queued) || !slices.Equal(got.Held, read.Held) {
						t.Errorf("%d to %d, queue %q, %d points:\nqueued %v\nread   %v\nheld %v\nread %v", from.Pos,
							to.Pos, queue, points, got.Queued, read.Queued, got.Held, read.Held)
					}
					series, err := ReadSeries(t.Context(), tx, span)
					if err != nil {
						return err
					}
					if last := len(series.Queued) - 1; series.Queued[last] != got.Queued[points-1] ||
						series.Held[last] != got.Held[points-1] {
						t.Errorf("%d to %d, queue %q: the series ends with %d and %d, the depth with %d and %d", from.Pos,
							to.Pos, queue, series.Queued[last], series.Held[last], got.Queued[points-1], got.Held[points-1])
					}
					most = max(most, slices.Max(got.Queued))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if most < 5 {
		t.Errorf("at most %d jobs were queued", most)
	}
}
