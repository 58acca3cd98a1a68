package commands_test

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/rebuild"
)

// TestRebuildWhileWorkersGoOn: a rebuild includes what happens between its plan and its application, to jobs
// with correct rows and to jobs with wrong rows.
func TestRebuildWhileWorkersGoOn(t *testing.T) {
	q := newQueue(t)
	var jobs []projection.Job
	for range 12 {
		jobs = append(jobs, q.enqueue(commands.Enqueue{Payload: []byte("x")}))
	}
	held := q.claim("w", func(r *commands.ClaimRequest) { r.Limit = 6 })
	q.do(held[0], commands.Succeed{Token: held[0].Token})
	if _, err := q.Pause(t.Context(), "cli:test", "other", "before"); err != nil {
		t.Fatal(err)
	}
	q.exec(`UPDATE jobs SET priority = 9 WHERE n IN (?, ?, ?, ?)`, held[0].N, held[1].N, held[2].N, jobs[8].N)
	q.exec(`DELETE FROM jobs WHERE n IN (?, ?)`, jobs[10].N, held[3].N)
	q.exec(
		`INSERT INTO jobs SELECT 5000, 'X', seq, state, lane, queue, priority, run_at, NULL, attempt, failures,
snoozes, max_attempts, max_runtime, worker,
		lease_token, claimed_at, heartbeat_at, lease_expires_at, end_by, finished_at, error_code, more
FROM jobs WHERE n = ?`, jobs[11].N)

	var plan *rebuild.Plan
	err := q.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		plan, err = rebuild.New(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	q.Now = q.Now.Add(time.Second)
	q.do(held[1], commands.Heartbeat{Token: held[1].Token, Lease: time.Minute}) // its row is wrong
	q.do(held[2], commands.Succeed{Token: held[2].Token})                       // its row is wrong
	q.do(held[4], commands.Succeed{Token: held[4].Token})                       // its row is correct
	q.do(jobs[8], commands.Cancel{})
	q.do(jobs[7], commands.Cancel{})
	q.enqueue(commands.Enqueue{})
	q.enqueue(commands.Enqueue{Key: "k"})
	q.claim("w")
	if _, err := q.Resume(t.Context(), "cli:test", "other", "meanwhile"); err != nil {
		t.Fatal(err)
	}
	q.exec(`UPDATE queues SET paused = 1`)

	var r rebuild.Report
	err = q.Store.Write(t.Context(), func(tx *ledger.Tx) (err error) {
		r, err = plan.Apply(t.Context(), tx)
		return err
	})
	if err != nil || r.Jobs != 14 || r.Changed != 4 || r.Missing != 2 || r.Extra != 1 || r.Queues != 1 ||
		len(r.Repaired) != 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestRebuildWithoutTheTable: a missing table is rebuilt from the events alone.
func TestRebuildWithoutTheTable(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{Key: "k"})
	q.enqueue(commands.Enqueue{})
	if ledgertest.OnPostgres(t) {
		q.exec(`DROP TABLE jobs CASCADE`) // and the views of it
	} else {
		q.exec(`DROP VIEW current`)
		q.exec(`DROP TABLE jobs`)
	}
	r, err := q.Rebuild(t.Context(), "cli:test")
	if err != nil || r.Jobs != 2 || r.Missing != 2 || r.Changed+r.Extra != 0 || len(r.Repaired) == 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// exec runs SQL as a user with a SQLite shell could.
func (q *queue) exec(statement string, args ...any) {
	q.T.Helper()
	err := q.Store.Write(q.T.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(statement, args...)
		return err
	})
	if err != nil {
		q.T.Fatalf("%s: %v", statement, err)
	}
}
