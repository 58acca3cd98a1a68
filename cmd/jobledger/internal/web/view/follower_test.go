package view

import (
	"testing"

	"jobledger/cmd/jobledger/internal/await"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// What the follower keeps has a limit, and what it does not keep comes from the ledger.
func TestFollowerKeepsTheNewestEvents(t *testing.T) {
	f := NewFollower()
	if !f.Join(await.SeenEnd{}) {
		t.Fatal("the first stream is refused")
	}
	const total = KeptEvents + 700
	var page []Sent
	for pos := int64(1); pos <= total; pos++ {
		e := Sent{Line: []byte("{}\n")}
		e.Pos = pos
		page = append(page, e)
	}
	f.add(page[:PageEvents])
	f.add(page[PageEvents:])
	if len(f.events) != KeptEvents || f.bytes != 3*KeptEvents || f.pos != total {
		t.Errorf("%d events of %d bytes, up to %d", len(f.events), f.bytes, f.pos)
	}
	if _, held, last, _ := f.After(total - KeptEvents - 1); held || last != total {
		t.Errorf("an event that is not kept: %t, %d", held, last)
	}
	events, held, _, _ := f.After(total - KeptEvents)
	if !held || len(events) != PageEvents || events[0].Pos != total-KeptEvents+1 {
		t.Errorf("the first one kept: %t, %d events", held, len(events))
	}
	if events, held, _, _ := f.After(total); !held || len(events) != 0 {
		t.Errorf("after the last one: %t, %d events", held, len(events))
	}
	f.add([]Sent{{Line: make([]byte, keptBytes)}})
	if f.bytes > keptBytes {
		t.Errorf("%d bytes, want at most %d", f.bytes, keptBytes)
	}
}
