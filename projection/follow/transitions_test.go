package follow_test

import (
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/follow"
	"jobledger/projection/internal/historytest"
)

// What is read of the stored form is what the events say, with their defaults: of each history, read from its
// beginning and from later positions, the transitions and the times at which jobs are ready are those of a
// fold of its events.
func TestTransitionsEqualEvents(t *testing.T) {
	for _, name := range []string{"v1.jsonl", "v2.jsonl", "v5-dependencies.jsonl",
		"v6-unique.jsonl", "v7-exceptions.jsonl"} {
		t.Run(name, func(t *testing.T) {
			s := ledgertest.Open(t)
			historytest.Record(t, s, historytest.Read(t, name))
			type known struct {
				ready follow.Ready
				queue string
			}
			err := s.Read(t.Context(), func(tx *ledger.Tx) error {
				tail, err := tx.Tail(t.Context())
				if err != nil {
					return err
				}
				for _, from := range []int64{0, tail / 3, tail / 2, tail - 1} {
					r := follow.Transitions{Pos: max(from, 0)}
					var got []follow.Transition
					err := r.Read(t.Context(), tx, tail, func(m *follow.Transition) { got = append(got, *m) })
					if err != nil {
						return err
					}
					jobs := make(map[int64]known)
					for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
						if err != nil {
							return err
						}
						if e.Seq == 0 || e.Kind() == event.KindHeartbeat || e.Kind() == event.KindTakenOver {
							continue
						}
						j, wait := jobs[e.N], int64(-1)
						if b, ok := e.Body.(*event.Enqueued); ok {
							j.queue = b.Queue
						}
						if e.Kind() == event.KindClaimed {
							wait = max(0, event.Micros(e.At)-j.ready.At())
						}
						j.ready.Add(e.From, e.To, event.Micros(e.At), follow.DueOf(e))
						jobs[e.N] = j
						if e.Pos <= from {
							continue
						}
						if len(got) == 0 {
							t.Fatalf("from %d there is no transition at %d", from, e.Pos)
						}
						m := got[0]
						got = got[1:]
						if m.Pos != e.Pos || m.Queue != j.queue || m.Ready != j.ready.At() || m.Wait != wait {
							t.Errorf("from %d: %+v, but the job of event %d of %s is ready at %d and waited %d", from, m,
								e.Pos, j.queue, j.ready.At(), wait)
						}
					}
					if len(got) > 0 {
						t.Errorf("from %d: %d transitions too many", from, len(got))
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
