package ledger_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// The check in steps finds an index that lacks entries, as the check in one piece does.
func TestCheckStructureFindsIndexes(t *testing.T) {
	ledgertest.OfSQLite(t)
	defer ledger.DivideEveryCheck()()
	check := func(path string) (inSteps, atOnce []string) {
		t.Helper()
		s := ledgertest.OpenAt(t, path)
		defer s.Close()
		inSteps, err := s.CheckStructure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read(t, s, func(tx *ledger.Tx) (err error) {
			atOnce, err = tx.Integrity(t.Context())
			return err
		})
		return inSteps, atOnce
	}
	for _, x := range []struct{ index, altered, original string }{
		{"", "", ""},
		{"claims", "kind = 13", "kind = 2"}, // entries of other events
		{"claims", "(worker, pos)", "(worker, at)"},
		{"leases", "n > 9", "lease_expires_at IS NOT NULL"},
	} {
		path := filepath.Join(t.TempDir(), "jobs.db")
		s := ledgertest.OpenAt(t, path)
		write(t, s, func(tx *ledger.Tx) error {
			e := event.Event{Pos: 1, N: 1, Seq: 1, Job: "01KDY9FY88TH00000000000001", At: tx.At(),
				Actor: "a", To: event.Queued, Body: &event.Enqueued{Queue: "mail", RunAt: tx.At(), MaxAttempts: 5}}
			if err := tx.Append(t.Context(), e); err != nil {
				return err
			}
			if err := note(t.Context(), tx, "a"); err != nil {
				return err
			}
			w := event.Worker{Name: "w", Boot: "b"}
			return tx.Append(t.Context(), event.Event{Pos: 3, N: 1, Seq: 2, Job: e.Job, At: tx.At(), Actor: "a",
				Worker: w, Token: "01KDY9FY88TH00000000000002", Attempt: 1, From: event.Queued,
				To: event.ClaimedState, Body: &event.Claimed{LeaseUntil: tx.At()}})
		})
		if x.index == "leases" {
			write(t, s, func(tx *ledger.Tx) error {
				_, err := tx.Exec(`INSERT INTO jobs (n, id, seq, state, queue, priority, run_at, attempt, failures,
    snoozes, max_attempts, lease_expires_at) VALUES (1, 'x', 1, 1, 1, 0, 0, 0, 0, 0, 1, 5)`)
				return err
			})
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if x.index != "" {
			forgeIndex(t, path, x.index, x.altered, x.original)
		}
		inSteps, atOnce := check(path)
		if want := x.index != ""; len(inSteps) > 0 != want || len(atOnce) > 0 != want {
			t.Errorf("index %q: found in steps %q, at once %q", x.index, inSteps, atOnce)
		}
	}
}

// forgeIndex fills an index from another definition than the one it keeps.
func forgeIndex(t *testing.T, path, name, altered, original string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=writable_schema(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var definition string
	err = db.QueryRowContext(t.Context(), `SELECT sql FROM sqlite_schema WHERE name = ?`, name).Scan(&definition)
	if err != nil || !strings.Contains(definition, original) {
		t.Fatalf("%s: %v", definition, err)
	}
	for _, statement := range []string{`DROP INDEX ` + name, strings.Replace(definition, original, altered, 1)} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	_, err = db.ExecContext(t.Context(), `UPDATE sqlite_schema SET sql = ? WHERE name = ?`, definition, name)
	if err != nil {
		t.Fatal(err)
	}
}
