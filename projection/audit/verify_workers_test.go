package audit_test

import (
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
)

// What says a second time who a worker process is, is compared: its presence has its boot, and a process that
// started claims in its own name.
func TestVerifyComparesWorkers(t *testing.T) {
	for _, x := range []struct{ what, statement, code string }{
		{"nothing", `UPDATE presence SET seen_at = seen_at + 1`, ""},
		{"the boot of a presence", `UPDATE presence SET boot = 'other'`, audit.FindPlace},
		{"the boot of a process", `UPDATE workers SET boot = 'other'`, audit.FindPlace},
		{"the actor of a claim", `UPDATE events SET actor = (SELECT n FROM names WHERE name = 'cli:test')
WHERE kind = 2`, audit.FindUnfit},
	} {
		store := ledgertest.Open(t)
		store.Now = func() time.Time { return ledgertest.Epoch }
		s := &commands.Service{Store: store}
		w := event.Worker{Name: "w1", Boot: "boot-1", Host: "build7", PID: 7}
		_, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"})
		if err == nil {
			err = s.WorkerStarted(t.Context(), w, []string{"mail"}, nil)
		}
		if err == nil {
			_, err = s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: w})
		}
		if err == nil {
			err = store.Write(t.Context(), func(tx *ledger.Tx) error {
				if err := tx.DropGuards(t.Context()); err != nil { // none of presence; with PostgreSQL they stay
					return err
				}
				_, err := tx.Exec(x.statement)
				return err
			})
		}
		if guarded := !strings.Contains(x.statement, "presence"); guarded && ledgertest.OnPostgres(t) {
			if err == nil {
				t.Errorf("%s: the guards let it pass", x.what)
			}
			continue
		}
		if err == nil {
			err = store.WriteRepair(t.Context(), func(tx *ledger.Tx) error {
				_, err := tx.RepairSchema(t.Context())
				return err
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil { // which knows the workers by heart
			t.Fatal(err)
		}
		again := ledgertest.OpenAt(t, store.DSN())
		findings := verify(t, again).Findings
		if want := x.code != ""; len(findings) > 0 != want || want && findings[0].Code != x.code {
			t.Errorf("%s: %+v, want %q", x.what, findings, x.code)
		}
	}
}
