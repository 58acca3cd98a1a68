package archive_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/archive"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/rebuild"
	"jobledger/projection/status"
)

// countsAsOf returns how many jobs each queue had in each state.
func countsAsOf(t *testing.T, store *ledger.Store, pos int64) map[string]map[event.State]int64 {
	t.Helper()
	counts := make(map[string]map[event.State]int64)
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		m, err := projection.AtPos(t.Context(), tx, pos)
		if err != nil {
			return err
		}
		m.At = m.At.Add(2 * time.Hour) // the hour before it has not left
		queues, err := status.Queues{At: m}.Read(t.Context(), tx)
		for _, q := range queues {
			counts[q.Name] = q.Jobs
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// Behind what is archived, the counts as of a moment are those of all jobs, including the ones that have left
// since; the table that has them follows from the events.
func TestStatusAsOfCountsWhatLeft(t *testing.T) {
	t.Parallel()
	s, dir := &commands.Service{Store: ledgertest.Open(t)}, filepath.Join(t.TempDir(), "archive")
	who := event.Worker{Name: "w", Boot: "01KDY9FY88TH00000000000011"}
	finish := func(queue string, n int, end func(token string) commands.Command) {
		t.Helper()
		var jobs []commands.Enqueue
		for range n {
			jobs = append(jobs, commands.Enqueue{Queue: queue, MaxAttempts: 1})
		}
		_, err := s.Enqueue(t.Context(), actor, jobs...)
		for err == nil {
			claimed, claimErr := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{queue}, Worker: who})
			if err = claimErr; err != nil || len(claimed) == 0 {
				break
			}
			_, err = s.Apply(t.Context(), "worker:w", claimed[0].ID, end(claimed[0].Token))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	succeed := func(token string) commands.Command { return commands.Succeed{Token: token} }
	fail := func(token string) commands.Command { return commands.Fail{Token: token, Code: "x"} }
	finish("mail", 40, succeed)
	finish("bill", 30, fail)
	finish("gone", 7, succeed) // a queue of which all jobs leave
	if _, err := s.Enqueue(t.Context(), actor, commands.Enqueue{Queue: "open"}); err != nil {
		t.Fatal(err)
	}
	finish("late", 60, succeed)
	var tail int64
	if err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		tail, err = tx.Tail(t.Context())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Close(t.Context(), s, 256, archive.Options{Dir: dir, Actor: actor}); err != nil {
		t.Fatal(err)
	}
	moments := []int64{256, 300, 351, tail}
	before := make(map[int64]map[string]map[event.State]int64)
	for _, pos := range moments {
		before[pos] = countsAsOf(t, s.Store, pos)
	}
	m := archive.Removal{Service: s, Dir: dir, Actor: actor}
	if gone, err := m.All(t.Context(), nil); err != nil || gone.Jobs != 77 {
		t.Fatalf("removed %+v, %v", gone, err)
	}
	same := func(when string) {
		t.Helper()
		for _, pos := range moments {
			if got := countsAsOf(t, s.Store, pos); !reflect.DeepEqual(got, before[pos]) {
				t.Errorf("%s, as of pos:%d: %v, and before anything left %v", when, pos, got, before[pos])
			}
		}
	}
	same("after the removal")
	verify(t, s.Store)

	// A table that does not say so is found, and counted again.
	for _, damage := range []string{`UPDATE departed SET jobs = jobs + 1 WHERE state = 5`,
		`DELETE FROM departed`, `INSERT INTO departed VALUES (0, 0, 3)`} {
		var found []audit.Finding
		var report rebuild.Report
		err := s.Store.Write(t.Context(), func(tx *ledger.Tx) error {
			_, err := tx.Exec(damage)
			return err
		})
		if err == nil {
			err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
				v, err := audit.Verify(t.Context(), tx, nil)
				found = v.Findings
				return err
			})
		}
		if err == nil {
			report, err = s.Rebuild(t.Context(), actor)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0].Field != "departed" || !report.Departed {
			t.Errorf("%s: found %+v, rebuilt %+v", damage, found, report)
		}
		same(damage)
	}
	verify(t, s.Store)

	// A whole copy counts them once.
	whole, err := archive.Reader{Store: s.Store, Dir: dir}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	for _, pos := range moments {
		if got := countsAsOf(t, whole, pos); !reflect.DeepEqual(got, before[pos]) {
			t.Errorf("a whole copy as of pos:%d: %v, want %v", pos, got, before[pos])
		}
	}
	left := ledger.Filter{Kinds: []event.Kind{event.KindRemoved}}
	for line, err := range s.Store.Lines(t.Context(), left, false) {
		if err != nil {
			t.Fatal(err)
		}
		if text := string(line.Event.AppendLeaf(nil)); strings.Contains(text, `"jobs":77`) &&
			!strings.Contains(text, `"left":[["bill",0,30,0],["gone",7,0,0],["mail",40,0,0]]`) {
			t.Errorf("the removed event is %s", text)
		}
	}
}
