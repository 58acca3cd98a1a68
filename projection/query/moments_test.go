package query_test

import (
	"testing"
	"time"

	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	"jobledger/projection/keyframe"
	"jobledger/projection/query"
)

// TestMomentsEqualFold compares what the pictures say of each moment with a plain fold of the events, where
// jobs wait for others and are cancelled because of them; without keyframes and with them.
func TestMomentsEqualFold(t *testing.T) {
	s := commandstest.ManyWays(t)
	wantMoments(t, s, "without keyframes")
	if _, err := keyframe.Extend(t.Context(), s.Store, 4); err != nil {
		t.Fatal(err)
	}
	wantMoments(t, s, "with keyframes")
}

func wantMoments(t *testing.T, s *commandstest.Scenario, how string) {
	t.Helper()
	ctx := t.Context()
	err := s.Store.Read(ctx, func(tx *ledger.Tx) error {
		jobs, latest := make(map[int64]projection.Job), projection.Moment{}
		var events []event.Event
		for e, err := range tx.Events(ctx, ledger.Filter{}) {
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		for _, e := range events {
			if e.N > 0 {
				j, err := projection.Evolve(jobs[e.N], e)
				if err != nil {
					return err
				}
				jobs[e.N] = j
			}
			m, err := projection.AtPos(ctx, tx, e.Pos)
			if err != nil {
				return err
			}
			if latest.Pos == 0 {
				latest = m
			}
			for _, queue := range []string{"mail", "bill"} {
				queued, held, head := int64(0), int64(0), projection.Job{}
				for _, j := range jobs {
					switch {
					case j.Queue != queue:
					case j.State == event.Queued:
						queued++
						if !j.RunAt.After(m.At) && (head.N == 0 || comesFirst(j, head)) {
							head = j
						}
					case j.State.Held():
						held++
					}
				}
				span := query.Span{From: latest, To: m, Queue: queue}
				asked := query.Depth{Span: span, Moments: []time.Time{m.At}, Merged: true}
				depth, err := asked.Read(ctx, tx)
				if err != nil {
					return err
				}
				if depth[0].Queued() != queued || depth[0].Held != held {
					t.Errorf("%s: depth of %s as of %d: %+v, want %d and %d", how, queue, e.Pos, depth[0], queued, held)
				}
				series, err := query.Series{Span: query.Span{From: m, To: m, Queue: queue}}.Read(ctx, tx)
				if err != nil {
					return err
				}
				if series.Queued[0] != queued || series.Held[0] != held {
					t.Errorf("%s: series of %s as of %d: %d and %d, want %d and %d", how, queue, e.Pos, series.Queued[0],
						series.Held[0], queued, held)
				}
				between, err := query.Between{Span: query.Span{From: m, To: m}}.Read(ctx, tx)
				if err != nil {
					return err
				}
				then := query.QueueBetween{}
				for _, q := range between.Queues {
					if q.Queue == queue {
						then = q
					}
				}
				if then.To.Queued != queued || then.To.Held != held {
					t.Errorf("%s: between of %s as of %d: %d and %d, want %d and %d", how, queue, e.Pos, then.To.Queued,
						then.To.Held, queued, held)
				}
				if n, err := (query.Head{Queue: queue, At: m}).Read(ctx, tx); err != nil || n != head.N {
					t.Errorf("%s: the head of %s as of %d is %d, %v, want %d", how, queue, e.Pos, n, err, head.N)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// comesFirst reports whether a is the one to be shown as the head, of two jobs that are ready.
func comesFirst(a, b projection.Job) bool {
	switch {
	case a.Priority != b.Priority:
		return a.Priority > b.Priority
	case !a.RunAt.Equal(b.RunAt):
		return a.RunAt.Before(b.RunAt)
	}
	return a.N < b.N
}
