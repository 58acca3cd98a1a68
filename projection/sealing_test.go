package projection_test

import (
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

func TestSealingIsWhatTheLastEventSays(t *testing.T) {
	s := ledgertest.Open(t)
	want := projection.Sealing{}
	for i, body := range []event.Body{&event.QueuePaused{Queue: "mail"}, &event.Sealing{Origin: "a"},
		&event.WorkerStopped{}, &event.Sealing{Origin: "a", Key: "k", Reason: "new key"},
		&event.QueueResumed{Queue: "mail"}} {
		e := event.Event{Actor: "cli:ann@host", Body: body}
		err := s.Write(t.Context(), func(tx *ledger.Tx) error {
			e.Pos, e.At = tx.Next(), tx.At()
			return tx.Append(t.Context(), e)
		})
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := body.(*event.Sealing); ok {
			want = projection.Sealing{On: true, Origin: b.Origin, Key: b.Key, Since: e.At, Pos: e.Pos}
		}
		var got projection.Sealing
		err = s.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			got, err = projection.SealingOf(t.Context(), tx)
			return err
		})
		if err != nil || got != want {
			t.Errorf("after event %d: got %+v, %v, want %+v", i+1, got, err, want)
		}
	}
}
