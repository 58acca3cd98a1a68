package query_test

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/internal/historytest"
	"jobledger/projection/keyframe"
	"jobledger/projection/query"
)

// knownAttempt is what a fold says of a claim.
type knownAttempt struct {
	pos, n        int64
	attempt       int
	claimed, beat time.Time
	ended         time.Time
	outcome       event.Kind
	endPos        int64
	overlaps      bool
}

// claimsUntil folds the events up to a pos into claims, in the order in which they began.
func claimsUntil(t *testing.T, tx *ledger.Tx, until int64) (claims []knownAttempt) {
	t.Helper()
	of := func(n int64, attempt int) *knownAttempt {
		for i := range claims {
			if claims[i].n == n && claims[i].attempt == attempt {
				return &claims[i]
			}
		}
		t.Fatalf("there is no attempt %d of job %d", attempt, n)
		return nil
	}
	last := make(map[int64]int)
	eachEvent(t, tx, func(e event.Event) {
		switch {
		case e.Pos > until || e.N == 0 || e.Attempt == 0 && last[e.N] == 0:
		case e.Kind() == event.KindClaimed:
			last[e.N] = e.Attempt
			claims = append(claims, knownAttempt{pos: e.Pos, n: e.N, attempt: e.Attempt, claimed: e.At})
		case e.Kind() == event.KindRefused && e.Attempt > 0:
			for a := e.Attempt; a <= last[e.N] && e.Attempt < last[e.N]; a++ {
				of(e.N, a).overlaps = true
			}
		case e.Seq == 0:
		case e.Kind() == event.KindHeartbeat, e.Kind() == event.KindTakenOver:
			of(e.N, last[e.N]).beat = e.At
		case of(e.N, last[e.N]).outcome == 0:
			c := of(e.N, last[e.N])
			c.ended, c.outcome, c.endPos = e.At, e.Kind(), e.Pos
		}
	})
	return claims
}

// As of each moment, the claims of each window are those of a fold of the events up to then: with their ends,
// their signs of life, and what overlapped; also where keyframes lead to them, page by page and the last
// ones.
func TestAttemptsAsOf(t *testing.T) {
	recorded := ledgertest.Open(t)
	historytest.Record(t, recorded, historytest.Read(t, "v1.jsonl"))
	busy := busy(t, 300).Store
	if _, err := keyframe.Extend(t.Context(), busy, 40); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*ledger.Store{recorded, busy} {
		err := s.Read(t.Context(), func(tx *ledger.Tx) error {
			tail, err := tx.Tail(t.Context())
			if err != nil {
				return err
			}
			for at := int64(1); at <= tail; at += max(1, tail/9) {
				known := claimsUntil(t, tx, at)
				for _, window := range [][2]int64{{0, at}, {at / 2, at}, {at / 3, at / 2}, {at, math.MaxInt64}} {
					if err := checkAttempts(t, tx, known, at, window); err != nil {
						return err
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

func checkAttempts(t *testing.T, tx *ledger.Tx, known []knownAttempt, at int64, window [2]int64) (err error) {
	t.Helper()
	var span query.Span
	if span.From, err = projection.AtPos(t.Context(), tx, window[0]); err != nil {
		return err
	}
	if span.To, err = projection.AtPos(t.Context(), tx, min(at, window[1])); err != nil {
		return err
	}
	if span.At, err = projection.AtPos(t.Context(), tx, at); err != nil {
		return err
	}
	for _, q := range []query.Attempts{{}, {Overlap: true}, {Outcomes: []event.Kind{0}},
		{Outcomes: []event.Kind{event.KindSucceeded, event.KindFailed}}} {
		var want []knownAttempt
		for _, c := range known {
			held := c.pos <= span.From.Pos
			switch {
			case c.pos > span.To.Pos || held && c.endPos > 0 && c.endPos <= span.From.Pos:
			case q.Overlap && !c.overlaps:
			case q.Outcomes != nil && !slices.Contains(q.Outcomes, c.outcome):
			default:
				c.overlaps = false
				want = append(want, c)
			}
		}
		q.Span = span
		all, err := q.Read(t.Context(), tx)
		if err != nil {
			return err
		}
		var got []knownAttempt
		for _, a := range all {
			got = append(got, knownAttempt{pos: a.Pos, n: a.N, attempt: a.Attempt, claimed: a.ClaimedAt,
				beat: a.LastHeartbeat, ended: a.EndedAt, outcome: a.Outcome, endPos: a.EndPos})
		}
		slices.SortFunc(got, func(a, b knownAttempt) int { return cmp.Compare(a.pos, b.pos) })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("as of %d, events %d to %d, %v:\ngot  %+v\nwant %+v", at, window[0], window[1], q.Outcomes,
				got, want)
		}
		q.Last, q.Limit = true, 3
		some, err := q.Read(t.Context(), tx)
		if err != nil {
			return err
		}
		if n := len(all); !reflect.DeepEqual(some, all[max(0, n-3):]) && n > 0 {
			t.Errorf("as of %d, events %d to %d: the last three are %+v of %+v", at, window[0], window[1], some, all)
		}
	}
	longest, err := query.Longest{Span: span, Limit: 4}.Read(t.Context(), tx)
	var want []time.Duration
	for _, c := range known {
		if c.endPos > span.From.Pos && c.endPos <= span.To.Pos {
			want = append(want, c.ended.Sub(c.claimed))
		}
	}
	slices.SortFunc(want, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	want = want[:min(len(want), 4)]
	for i, a := range longest {
		if len(longest) != len(want) || a.Lasted() != want[i] {
			t.Errorf("the longest of events %d to %d are %+v, want %v", window[0], window[1], longest, want)
		}
	}
	if len(longest) != len(want) {
		t.Errorf("the longest of events %d to %d are %d, want %v", window[0], window[1], len(longest), want)
	}
	return err
}
