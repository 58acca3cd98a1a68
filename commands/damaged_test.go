package commands_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/claims"
)

// A damaged row of jobs delays no other job. It is reported when there is nothing else to claim.
func TestClaimSkipsDamagedJobs(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"invalid JSON":          `UPDATE jobs SET more = '{' WHERE n = ?`,
		"a queue without name":  `UPDATE jobs SET queue = 99 WHERE n = ?`,
		"a succeeded state":     `UPDATE jobs SET state = 4 WHERE n = ?`,
		"no such state":         `UPDATE jobs SET state = 77 WHERE n = ?`,
		"seq too low":           `UPDATE jobs SET seq = 0 WHERE n = ?`,
		"an invalid lane":       `UPDATE jobs SET lane = 'mail x ' WHERE n = ?`,
		"a lane without a rank": `UPDATE jobs SET lane = 'mail ' WHERE n = ?`,
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(statement, "more =") {
				ledgertest.OfSQLite(t)
			}
			s := newQueue(t)
			var jobs []commands.Enqueue
			for range 150 { // more than a page of a lane
				jobs = append(jobs, commands.Enqueue{Queue: "mail", Payload: []byte("x")})
			}
			enqueued, err := s.Enqueue(t.Context(), "cli:test", jobs...)
			if err != nil {
				t.Fatal(err)
			}
			bad := []int{0, 1, 70}
			for _, i := range bad {
				damage(t, s.Service, statement, enqueued[i].N)
			}
			request := commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "w", Boot: "b"},
				Limit: 20}
			var steps []commands.Op
			var got []event.JobID
			for range 20 {
				outcomes, claimed, err := s.ApplyAndClaim(t.Context(), "worker:w", steps, request)
				if err != nil && len(got) != 147 {
					t.Fatalf("after %d: %v", len(got), err)
				}
				for i, o := range outcomes {
					if o.Err != nil || o.Job.State != event.SucceededState {
						t.Fatalf("step %d: %v, %s", i, o.Err, o.Job.State)
					}
				}
				if steps = nil; len(claimed) == 0 {
					break
				}
				for _, j := range claimed {
					got = append(got, j.ID)
					steps = append(steps, commands.Op{Job: j, Command: commands.Succeed{Token: j.Token}})
				}
			}
			for i, j := range enqueued {
				if slices.Contains(got, j.ID) == slices.Contains(bad, i) {
					t.Errorf("job %d: claimed %t", i, slices.Contains(got, j.ID))
				}
			}
			_, err = s.Claim(t.Context(), request)
			var damaged *claims.DamagedJobError
			if !errors.As(err, &damaged) || !errors.Is(err, ledger.ErrDamaged) || damaged.Job != "" &&
				damaged.Job != enqueued[0].ID {
				t.Errorf("what is left: got %v, want a word on job %s", err, enqueued[0].ID)
			}
			if _, err := s.Rebuild(t.Context(), "cli:test"); err != nil {
				t.Fatal(err)
			}
			if claimed, err := s.Claim(t.Context(), request); err != nil || len(claimed) != len(bad) {
				t.Errorf("after rebuild: %d claimed, %v", len(claimed), err)
			}
		})
	}
}

func damage(t *testing.T, s *commands.Service, statement string, args ...any) {
	t.Helper()
	err := s.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
