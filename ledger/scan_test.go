package ledger_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// many appends n events, cycling through all kinds; each has every field of its body set, or none.
func many(t testing.TB, s *ledger.Store, n int) {
	t.Helper()
	write(t, s, func(tx *ledger.Tx) error {
		list := ledgertest.StorableEvents(t)
		for i := range n {
			e := list[i%len(list)]
			e.Pos, e.At, e.Actor = tx.Next(), tx.At(), fmt.Sprint("cli:ann", i%7)
			if e.Kind().OfJob() {
				e.N = e.Pos
			}
			if e.Kind().HasSeq() {
				e.Seq, e.From, e.To = 1, event.Queued, event.Running
			}
			switch e.Kind() {
			case event.KindEnqueued:
				e.Job, e.From = "01JJOB0000000000000000000A", 0
			case event.KindClaimed, event.KindRefused, event.KindStopped, event.KindTakenOver:
				e.Token, e.Attempt, e.Worker = fmt.Sprint("T", i), i+1,
					event.Worker{Name: "w", Boot: fmt.Sprint("b", i%5), PID: i % 3}
			}
			if err := tx.Append(t.Context(), e); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanned is what a scan yields, and its error.
func scanned(t testing.TB, s *ledger.Store, what ledger.Scan, enough int) (list []ledger.Scanned, end error) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		for batch, err := range tx.Scan(t.Context(), what) {
			if err != nil {
				end = err
				return nil
			}
			if list = append(list, batch...); len(list) >= enough {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, end
}

// Reading ahead on a second connection yields what the transaction itself reads, damaged or not.
func TestScanReadsTheSameAhead(t *testing.T) {
	t.Parallel()
	s := open(t)
	const n = 3000
	many(t, s, n)
	for _, test := range []struct {
		name   string
		damage string
		what   ledger.Scan
		enough int
		odd    int  // how many events differ from their canonical form
		wrong  bool // one event cannot be read
	}{
		{"all", "", ledger.Scan{Strict: true}, math.MaxInt, 0, false},
		{"not so strict", "", ledger.Scan{}, math.MaxInt, 0, false},
		{"a window", "", ledger.Scan{After: 700, Until: 2900, Strict: true}, math.MaxInt, 0, false},
		{"nothing", "", ledger.Scan{After: n}, math.MaxInt, 0, false},
		{"no more than needed", "", ledger.Scan{}, 600, 0, false},
		{"a gap", `DELETE FROM events WHERE pos BETWEEN 1000 AND 2100`, ledger.Scan{Strict: true}, math.MaxInt, 0,
			false},
		{"zero for null", `UPDATE events SET attempt = 0
			WHERE pos = (SELECT min(pos) FROM events WHERE pos > 2220 AND attempt IS NULL)`,
			ledger.Scan{Strict: true}, math.MaxInt, 1, false},
		{"a ulid too many", `UPDATE events SET ulid = 'x' WHERE pos IN (7,
			(SELECT min(pos) FROM events WHERE pos > 2220 AND ulid IS NULL))`,
			ledger.Scan{Strict: true}, math.MaxInt, 2, false},
		{"an empty digest", `UPDATE events SET digest = x'' WHERE pos = 2500`, ledger.Scan{Strict: true},
			math.MaxInt, 0, true},
		{"no JSON", `UPDATE events SET data = '{' WHERE pos = 513`, ledger.Scan{}, math.MaxInt, 0, true},
		{"an unknown kind", `UPDATE events SET kind = 99 WHERE pos = 1`, ledger.Scan{}, math.MaxInt, 0, true},
		{"an actor without a name", `UPDATE events SET actor = 99 WHERE pos = 3000`, ledger.Scan{}, math.MaxInt, 0,
			true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := s
			if test.damage != "" {
				ledgertest.OfSQLite(t)
				s = damaged(t, s, test.damage)
			}
			plain, plainEnd := scanned(t, s, test.what, test.enough)
			ledger.ReadAhead(0, t.Cleanup)
			ahead, aheadEnd := scanned(t, s, test.what, test.enough)
			if !reflect.DeepEqual(ahead, plain) || fmt.Sprint(aheadEnd) != fmt.Sprint(plainEnd) {
				t.Errorf("ahead %d events and %v, plainly %d and %v", len(ahead), aheadEnd, len(plain), plainEnd)
			}
			if odd := len(slices.DeleteFunc(slices.Clone(plain),
				func(e ledger.Scanned) bool { return e.NonCanonical == "" })); odd != test.odd {
				t.Errorf("%d events are odd, want %d", odd, test.odd)
			}
			if _, wrong := errors.AsType[*ledger.EventError](plainEnd); wrong != test.wrong {
				t.Errorf("it ended with %v", plainEnd)
			}
		})
	}
}

// damaged returns a copy of s on which a statement was run with a SQLite shell.
func damaged(t testing.TB, s *ledger.Store, statement string) *ledger.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	if _, err := s.Vacuum(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range []string{`DROP TRIGGER events_no_update`, `DROP TRIGGER events_no_delete`, statement} {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return ledgertest.OpenAt(t, path)
}
