package ledger_test

import (
	"errors"
	"maps"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

func TestKindsAndStatesEqualSchema(t *testing.T) {
	kinds, states := make(map[int64]string), make(map[int64]string)
	for _, k := range event.Kinds() {
		kinds[int64(k)] = k.String()
		if got, err := event.ParseKind(k.String()); got != k || err != nil {
			t.Errorf("kind %d: parsed as %d, %v", k, got, err)
		}
	}
	for _, s := range event.States() {
		states[int64(s)] = s.String()
		if got, err := event.ParseState(s.String()); got != s || err != nil {
			t.Errorf("state %d: parsed as %d, %v", s, got, err)
		}
	}
	read(t, open(t), func(tx *ledger.Tx) error {
		for query, want := range map[string]map[int64]string{`SELECT n, kind FROM kinds`: kinds,
			`SELECT n, state FROM states`: states} {
			rows, err := tx.Query(t.Context(), query)
			if err != nil {
				return err
			}
			defer rows.Close()
			got := make(map[int64]string)
			for rows.Next() {
				var n int64
				var word string
				if err := rows.Scan(&n, &word); err != nil {
					return err
				}
				got[n] = word
			}
			if err := rows.Err(); err != nil {
				return err
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", query, got, want)
			}
		}
		return nil
	})
}

// The numbers are stored: entries may be added to this list and never changed (I9).
func TestKindNumbersNeverChange(t *testing.T) {
	for i, word := range []string{"enqueued", "claimed", "heartbeat", "succeeded", "failed", "released",
		"reclaimed", "cancelled", "retried", "rescheduled",
		"refused", "erased", "queue_paused", "queue_resumed", "worker_started", "worker_stopped", "rebuilt",
		"restored", "imported"} {
		if got := event.Kind(i + 1).String(); got != word {
			t.Errorf("kind %d: got %s, want %s", i+1, got, word)
		}
	}
	if got := event.KindStopped.String() + " " + event.KindTakenOver.String(); got != "stopped taken_over" {
		t.Errorf("kinds 29 and 30: got %s", got)
	}
	if event.KindStopped != 29 || event.KindTakenOver != 30 {
		t.Errorf("stopped and taken_over: got %d and %d, want 29 and 30", event.KindStopped, event.KindTakenOver)
	}
	for i, word := range []string{"", "queued", "claimed", "running", "succeeded", "failed", "cancelled"} {
		if got := event.State(i).String(); got != word {
			t.Errorf("state %d: got %q, want %q", i, got, word)
		}
	}
}

func TestKindUnknownWordIsRefused(t *testing.T) {
	for _, word := range []string{"", "Enqueued", "kind(0)", "kind(20)", "kind(99)", "state(0)"} {
		if k, err := event.ParseKind(word); !errors.Is(err, ledger.ErrUnknownKind) {
			t.Errorf("kind %q: got %d, %v", word, k, err)
		}
		if s, err := event.ParseState(word); err == nil {
			t.Errorf("state %q: got %d", word, s)
		}
	}
	if got := event.Kind(99).String() + event.Kind(-1).String() + event.State(-1).String() +
		event.State(8).String(); got != "kind(99)kind(-1)state(-1)state(8)" {
		t.Errorf("numbers without a word: %s", got)
	}
}
