package query_test

import (
	"maps"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/query"
)

// What failed adds up, however it is grouped, a group has exactly its attempts, and the next job of a
// queue is the same now and as of now.
func TestQueueFacts(t *testing.T) {
	s := night(t)
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		tail, err := tx.Tail(t.Context())
		if err != nil {
			return err
		}
		to, err := projection.AtPos(t.Context(), tx, tail)
		if err != nil {
			return err
		}
		to.At = to.At.Add(time.Hour)
		for _, by := range []query.FailuresBy{query.ByCode, query.ByQueue, query.ByCause} {
			asked := query.Failures{Span: query.Span{To: to}, By: by, Outcomes: []event.Kind{event.KindFailed,
				event.KindReclaimed, event.KindReleased}}
			if asked.From, err = projection.AtPos(t.Context(), tx, tail/3); err != nil {
				return err
			}
			groups, err := asked.Read(t.Context(), tx)
			if err != nil {
				return err
			}
			sum := int64(0)
			for _, g := range groups.List {
				sum += g.Attempts
				found, err := (query.Attempts{Span: query.Span{From: asked.From, To: to, At: to, Queue: g.Queue},
					Outcomes: asked.Outcomes, Code: &g.Code}).Read(t.Context(), tx)
				if err != nil {
					return err
				}
				jobs := make(map[int64]bool)
				for _, a := range found {
					jobs[a.N] = true
				}
				if by != query.ByCause && (int64(len(found)) != g.Attempts || len(g.Each) != len(found) ||
					!maps.Equal(jobs, g.Jobs)) {
					t.Errorf("by %d: %q of %s: %d attempts of %d jobs, the claims with its code are %d of %d", by,
						g.Code, g.Queue, g.Attempts, len(g.Jobs), len(found), len(jobs))
				}
			}
			if sum != groups.Attempts || len(groups.List) < 3 {
				t.Errorf("by %d: %d groups of %d attempts, the sum is %d", by, len(groups.List), groups.Attempts, sum)
			}
			asked.Limit = 2
			some, err := asked.Read(t.Context(), tx)
			if err != nil || len(some.List) != 2 || some.More != len(groups.List)-2 || some.Attempts != sum {
				t.Errorf("by %d: at most two: %+v, %v", by, some, err)
			}
		}
		for _, queue := range []string{"mail", "render"} {
			now, err := (query.Head{queue, projection.Now(to.At)}).Read(t.Context(), tx)
			if err != nil {
				return err
			}
			then, err := (query.Head{queue, to}).Read(t.Context(), tx)
			if err != nil {
				return err
			}
			if now != then || queue == "mail" && now == 0 {
				t.Errorf("the next job of %s is %d, and as of now %d", queue, now, then)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
