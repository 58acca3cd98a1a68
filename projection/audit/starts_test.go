package audit_test

import (
	"slices"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
	"jobledger/projection/internal/historytest"
)

// TestVerifySinceCountsStarts records claims above rates, and wants a verification since any event to find
// those that come later, like one of all events. It reads the claims before in pages of one, and of many.
func TestVerifySinceCountsStarts(t *testing.T) {
	for name, limit := range map[string]event.QueueLimited{
		"rate":           {Rate: 1, RatePer: 2 * time.Second},
		"rate and burst": {Rate: 1, RatePer: time.Minute, Burst: 2},
		"rate of groups": {GroupRate: 1, GroupRatePer: 4 * time.Second},
		"both":           {Rate: 1, RatePer: time.Minute, Burst: 3, GroupRate: 1, GroupRatePer: time.Hour},
	} {
		events := historytest.Read(t, "v8-group-rates.jsonl")
		limit.Queue, limit.PerGroup = "mail", 2
		events[0].Body = &limit
		s := ledgertest.Open(t)
		historytest.Record(t, s, events)
		over := func(tx *ledger.Tx, since int64) (at []int64) {
			v, err := audit.VerifySince(t.Context(), tx, since, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range v.Findings {
				if f.Code != audit.FindOverLimit {
					t.Errorf("%s, since %d: %+v", name, since, f)
				}
				at = append(at, f.Pos)
			}
			return at
		}
		err := s.Read(t.Context(), func(tx *ledger.Tx) error {
			all := over(tx, 0)
			if len(all) == 0 {
				t.Errorf("%s: no claim is above the rate, so nothing was tried", name)
			}
			for _, size := range []int{1, 1000} {
				audit.SetClaimsPage(t, size)
				for since := range int64(len(events)) {
					want := slices.DeleteFunc(slices.Clone(all), func(pos int64) bool { return pos <= since })
					if got := over(tx, since); !slices.Equal(got, want) {
						t.Errorf("%s, since %d, pages of %d: claims %v are above the rate, want %v", name, since, size, got,
							want)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
