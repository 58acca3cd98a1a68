package outbox_test

import (
	"database/sql"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/outbox"
	"jobledger/commands/worker"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// TestRelayForgetsOnceOfEndedJobs: of the rows of worker.Once, a relay removes those that are old and whose
// job has ended by its ledger, and no other.
func TestRelayForgetsOnceOfEndedJobs(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, dsn string) {
		db, service, ctx := openDB(t, dsn), verified(t), t.Context()
		asked := []commands.Enqueue{{Queue: "q"}, {Queue: "q"}, {Queue: "q"}}
		made, err := service.Enqueue(ctx, "test", asked...)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range made[:2] {
			if _, err := service.Cancel(ctx, "test", j.ID, ""); err != nil {
				t.Fatal(err)
			}
		}
		ended, recent, open := made[0].ID, made[1].ID, made[2].ID
		const other, strange = event.JobID("01ARZ3NDEKTSV4RRFFQ69G5FAV"), event.JobID("it's none")
		for _, id := range []event.JobID{ended, recent, open, other, strange} {
			if _, err := worker.Once(ctx, db, projection.Job{ID: id, Token: "t"}); err != nil {
				t.Fatal(err)
			}
		}
		const old = `UPDATE jobledger_once SET at = '2026-01-01T00:00:00.000Z' WHERE job <> $1`
		if _, err := db.ExecContext(ctx, old, string(recent)); err != nil {
			t.Fatal(err)
		}
		runRelay(t, &outbox.Relay{Service: service, From: db, KeepOnce: -1}) // keeps them
		runRelay(t, &outbox.Relay{Service: service, From: db, KeepOnce: 24 * time.Hour})
		for end := time.Now().Add(30 * time.Second); onceRows(t, db) > 4; {
			if time.Now().After(end) {
				t.Fatalf("%d rows are left", onceRows(t, db))
			}
			time.Sleep(5 * time.Millisecond) // between two polls of the table
		}
		for _, id := range []event.JobID{ended, recent, open, other, strange} {
			first, err := worker.Once(ctx, db, projection.Job{ID: id, Token: "t"})
			if err != nil || first != (id == ended) {
				t.Errorf("%s: first is %t, %v", id, first, err)
			}
		}
	})
}

func onceRows(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow(`SELECT count(*) FROM jobledger_once`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
