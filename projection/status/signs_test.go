package status

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/internal/historytest"
)

// badNight returns a ledger of a history in which many workers were killed.
func badNight(t *testing.T) *ledger.Store {
	t.Helper()
	history, err := os.ReadFile(filepath.Join(historytest.Dir(t), "bad-night.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	s := ledgertest.Open(t)
	err = s.Write(t.Context(), func(tx *ledger.Tx) error {
		l := audit.NewLoader(tx)
		for text := range bytes.Lines(history) {
			var line event.Line
			if err := line.UnmarshalJSON(text); err != nil {
				return err
			}
			if err := l.Add(t.Context(), line); err != nil {
				return err
			}
		}
		return l.End(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSignsEqualPlainSearch compares the signs of life of each process with those that a search through all
// events finds. A lost job counts only if the process did nothing later.
func TestSignsEqualPlainSearch(t *testing.T) {
	s := badNight(t)
	acts := []event.Kind{event.KindClaimed, event.KindHeartbeat, event.KindSucceeded, event.KindFailed,
		event.KindReleased, event.KindRefused, event.KindStopped, event.KindTakenOver}
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		over, err := takenOver(t.Context(), tx, 0)
		if err != nil {
			return err
		}
		var events []event.Event
		of := make(map[int64][]event.Event)
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			events = append(events, e)
			if e.Worker.Boot == "" {
				continue
			}
			n, err := tx.Worker(t.Context(), e.Worker)
			if err != nil {
				return err
			}
			of[n] = append(of[n], e)
		}
		last := func(n, until int64) (acted, taken time.Time) {
			for _, e := range of[n] {
				b, reclaimed := e.Body.(*event.Reclaimed)
				switch {
				case e.Pos > until:
				case slices.Contains(acts, e.Kind()):
					acted = e.At
				case reclaimed && !strings.Contains(string(b.Reason), "max_runtime"):
					taken = e.At
				}
			}
			return acted, taken
		}
		step := ledgertest.Size(1009, 499, 17)
		for pos := 1; pos <= len(events); pos += step {
			m, err := projection.AtPos(t.Context(), tx, int64(pos))
			if err != nil {
				return err
			}
			for n := range of {
				got, err := signsOf(t.Context(), tx, n, over[n], m, true)
				if err != nil {
					return err
				}
				var want signs
				want.acted, want.taken = last(n, m.Pos)
				acted, taken := last(n, math.MaxInt64)
				want.later, want.lost = acted.After(m.At), taken.After(m.At)
				if !got.taken.After(got.acted) && !want.taken.After(want.acted) {
					got.taken = want.taken
				}
				if got.later && want.later {
					got.lost = want.lost
				}
				if got != want {
					t.Fatalf("process %d at %d: %+v, want %+v", n, pos, got, want)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStatusPlans: what status, workers and moments ask reads indexes, and no table as a whole.
func TestStatusPlans(t *testing.T) {
	ledgertest.OfSQLite(t)
	s := ledgertest.Open(t)
	ledgertest.WantPlan(t, s, lastActs, "c USING INDEX claims (worker=? AND at<?)",
		"j USING INTEGER PRIMARY KEY (rowid=?)", "e USING INDEX sqlite_autoindex_events_1 (job=?)")
	ledgertest.WantPlan(t, s, actsIn, "e USING INDEX sqlite_autoindex_events_1 (job=?)")
	ledgertest.WantPlan(t, s, actors, "e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)")
	ledgertest.WantPlan(t, s, takeovers, "e USING INDEX rare_events (kind=? AND rowid>?)")
	ledgertest.WantPlan(t, s, claimedSince, "c USING COVERING INDEX claims (worker=? AND at>?)")
	ledgertest.WantPlan(t, s, openNow, "jobs USING INDEX ready (lane>?)",
		"jobs USING INDEX leases (lease_expires_at>?)")
}

// TestLostWorkersOfWindow: who fell silent within a window is who fell silent since the first event, by then,
// and gave the last sign of life within it.
func TestLostWorkersOfWindow(t *testing.T) {
	s := badNight(t)
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		tail, err := tx.Tail(t.Context())
		if err != nil {
			return err
		}
		silent := 0
		for pos := int64(0); pos < tail; pos += 97 {
			from, err := projection.AtPos(t.Context(), tx, pos)
			if err != nil {
				return err
			}
			for _, until := range []int64{pos + 50, pos + 400, tail} {
				to, err := projection.AtPos(t.Context(), tx, min(until, tail))
				if err != nil {
					return err
				}
				all, err := LostWorkers(t.Context(), tx, projection.Moment{}, to)
				if err != nil {
					return err
				}
				want := slices.DeleteFunc(all, func(w LostWorker) bool { return !w.SeenAt.After(from.At) })
				got, err := LostWorkers(t.Context(), tx, from, to)
				if err != nil {
					return err
				}
				if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
					t.Fatalf("silent from %d to %d: %v, want %v", from.Pos, to.Pos, got, want)
				}
				silent += len(got)
			}
		}
		if silent == 0 {
			t.Error("no process was silent")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
