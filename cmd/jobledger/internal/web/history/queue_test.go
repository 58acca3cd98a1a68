package history

import (
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/nighttest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
	"jobledger/projection"
	"jobledger/projection/query"
)

// What failed by code adds up to each failure, and the next job of a queue is the same now and as of now.
func TestQueueFacts(t *testing.T) {
	s := nighttest.Import(t)
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		tail, err := tx.Tail(t.Context())
		if err != nil {
			return err
		}
		to, err := projection.AtPos(t.Context(), tx, tail)
		if err != nil {
			return err
		}
		to.At = to.At.Add(time.Hour)
		want := make(map[[2]string]int64)
		span := Span{Span: query.Span{To: to}}
		err = EachFailure(t.Context(), tx, span, func(_ event.Event, queue, code, _ string) {
			want[[2]string{queue, code}]++
		})
		if err != nil {
			return err
		}
		codes, err := FailuresByCode(t.Context(), tx, 0, tail, "")
		if err != nil {
			return err
		}
		for _, c := range codes {
			if n := want[[2]string{c.Queue, c.Code}]; n != c.Attempts || c.Jobs > n || c.First.After(c.Last) {
				t.Errorf("%+v, want %d attempts", c, n)
			}
		}
		if len(codes) != len(want) || len(want) == 0 {
			t.Errorf("%d codes, want %d", len(codes), len(want))
		}
		for _, queue := range []string{"mail", "render"} {
			now, err := Head(t.Context(), tx, queue, to.At)
			if err != nil {
				return err
			}
			then, err := HeadAsOf(t.Context(), tx, queue, to)
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
