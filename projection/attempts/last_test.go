package attempts_test

import (
	"math"
	"slices"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/attempts"
	"jobledger/projection/internal/historytest"
)

// TestListLast compares the last claims with the end of the list of all, for each number of them.
func TestListLast(t *testing.T) {
	s := ledgertest.Open(t)
	historytest.Record(t, s, historytest.Read(t, "v1.jsonl"))
	ctx := t.Context()
	err := s.Read(ctx, func(tx *ledger.Tx) error {
		to, err := projection.AtPos(ctx, tx, math.MaxInt64)
		if err != nil {
			return err
		}
		middle, err := projection.AtPos(ctx, tx, to.Pos/2)
		if err != nil {
			return err
		}
		whole, err := attempts.List(ctx, tx, attempts.Filter{To: to})
		if err != nil {
			return err
		}
		if len(whole) < 10 {
			t.Fatalf("the history has only %d claims", len(whole))
		}
		filters := []attempts.Filter{{}, {From: middle}, {Worker: whole[0].Worker.Name}, {Queue: whole[0].Queue},
			{Job: whole[0].N}, {Outcomes: []event.Kind{event.KindSucceeded}}, {Overlap: true},
			{From: middle, Outcomes: []event.Kind{0}}, {Queue: "nowhere"}}
		for _, f := range filters {
			f.To = to
			all, err := attempts.List(ctx, tx, f)
			if err != nil {
				return err
			}
			for n := 1; n <= len(all)+1; n++ {
				f.Last, f.Limit = true, n
				last, err := attempts.List(ctx, tx, f)
				if err != nil {
					return err
				}
				if got, want := places(last), places(all[max(0, len(all)-n):]); !slices.Equal(got, want) {
					t.Errorf("the last %d of %+v: got %v, want %v", n, f, got, want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// places returns the pos of each claim.
func places(list []attempts.Attempt) (all []int64) {
	for _, a := range list {
		all = append(all, a.Pos)
	}
	return all
}
