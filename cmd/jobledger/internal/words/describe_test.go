package words

import (
	"testing"

	"jobledger/ledger/event"
)

func TestDescribeFailed(t *testing.T) {
	for code, want := range map[string]string{"error": "attempt 1 by w1; error; not tried again",
		"smtp": "attempt 1 by w1; error smtp; not tried again"} {
		e := event.Event{Attempt: 1, Actor: "worker:w1", Worker: event.Worker{Name: "w1"},
			Body: &event.Failed{ErrorCode: code}}
		if got := Describe(e, nil); got != want {
			t.Errorf("%s: got %q, want %q", code, got, want)
		}
	}
}
