package view

import (
	"bytes"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"jobledger/cmd/jobledger/internal/files"
	"jobledger/commands/commandstest"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// What is read once for all who look, and fed event by event, is at each position of the bad night what the
// events up to there add up to: the claims that are live are those of the jobs that were held then, each job
// that was queued is known with the time at which it is ready, and what was counted is what a fresh reader
// counts.
func TestFedEventByEventEqualsTheFold(t *testing.T) {
	s := commandstest.New(t)
	text, err := os.ReadFile("../../../../../testdata/history/bad-night.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := files.Lines(io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text))))
	if _, err := load.Import(t.Context(), s.Service, "cli:test", "bad-night.jsonl", lines, nil); err != nil {
		t.Fatal(err)
	}
	every := ledgertest.Size(int64(501), 251, 1)
	afresh := ledgertest.Size(int64(2001), 1501, 83)
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		tail, err := tx.Tail(t.Context())
		if err != nil {
			return err
		}
		var fed Totals
		var moments Moments
		none := func(map[string]*QueueTotals) {}
		for pos := int64(1); pos <= tail; pos++ {
			if _, whole, err := fed.refresh(t.Context(), tx, pos, none); err != nil || !whole {
				t.Fatal(whole, err)
			}
			if err := moments.refresh(t.Context(), tx, pos); err != nil {
				return err
			}
			if pos%every == 0 || pos == tail {
				if err := sameAsThen(t, tx, &fed, pos); err != nil {
					return err
				}
			}
			if pos%afresh != 0 && pos != tail {
				continue
			}
			var whole Totals
			if _, _, err := whole.refresh(t.Context(), tx, pos, none); err != nil {
				return err
			}
			if !reflect.DeepEqual(fed.queues, whole.queues) || !maps.Equal(fed.ready, whole.ready) ||
				!maps.Equal(fed.signs, whole.signs) {
				t.Errorf("at %d a fresh reader counts something else", pos)
			}
			var all Moments
			if err := all.refresh(t.Context(), tx, pos); err != nil {
				return err
			}
			if !slices.Equal(moments.marks, all.marks) || moments.pos != pos {
				t.Errorf("at %d a fresh reader has other moments", pos)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sameAsThen compares fed with the jobs as they were at pos.
func sameAsThen(t *testing.T, tx *ledger.Tx, fed *Totals, pos int64) error {
	t.Helper()
	at, err := projection.AtPos(t.Context(), tx, pos)
	if err != nil {
		return err
	}
	then, err := projection.ListAsOf(t.Context(), tx, projection.Filter{}, at)
	if err != nil {
		return err
	}
	held := make(map[int64]int) // attempts, by job
	for _, c := range fed.claims.Live() {
		held[c.N] = c.Attempt
	}
	queued := 0
	kinds := make(map[string]int64) // jobs that were enqueued, by queue
	for _, j := range then {
		kinds[j.Queue]++
		attempt, isHeld := held[j.N]
		if want := j.State == event.ClaimedState || j.State == event.Running; isHeld != want ||
			isHeld && attempt != j.Attempt {
			t.Errorf("at %d job %s is %s, attempt %d; it has a live claim: %t, attempt %d", pos, j.ID, j.State,
				j.Attempt, isHeld, attempt)
		}
		if j.State == event.Queued {
			queued++
			ready, known := fed.ready[j.N]
			if !known || ready.Before(j.RunAt) {
				t.Errorf("at %d job %s is to run at %s, and is ready at %s", pos, j.ID, j.RunAt, ready)
			}
		}
	}
	if len(fed.ready) != queued {
		t.Errorf("at %d %d jobs are ready or will be, want %d", pos, len(fed.ready), queued)
	}
	for queue, n := range kinds {
		if got := fed.queues[queue].Kinds[event.KindEnqueued]; got != n {
			t.Errorf("at %d %d jobs of %s were enqueued, want %d", pos, got, queue, n)
		}
	}
	return nil
}
