package commands_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// TestBeforeWriteRunsBeforeWrite shows that BeforeWrite still runs between the read and the write of a
// sweep.
func TestBeforeWriteRunsBeforeWrite(t *testing.T) {
	q := newQueue(t)
	q.many(1)
	q.Now = q.Now.Add(time.Hour)
	acted := 0
	w := commands.Sweeper{Service: q.Service, Actor: "sweeper:test", Grace: new(time.Duration)}
	r, err := w.Sweep(commandstest.BeforeWrite{Context: t.Context(), Act: func() { acted++ }})
	// more than once if the sweep was late and read again
	if err != nil || len(r.Reclaimed) != 1 || acted < 1 {
		t.Errorf("%+v, %v, and others acted %d times, want 1 or more", r, err, acted)
	}
}

// newControlledQueue returns a queue whose commits the test controls.
func newControlledQueue(t *testing.T) (*queue, *commandstest.Commits) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	c := commandstest.ControlCommits(path)
	q := &queue{commandstest.On(t, ledgertest.OpenAt(t, path))}
	return q, c
}

// TestUnknownCommitSentAgain also checks that the two failures do what their names say.
func TestUnknownCommitSentAgain(t *testing.T) {
	for _, v := range []commandstest.CommitOutcome{commandstest.RolledBack, commandstest.Unacknowledged} {
		q, c := newControlledQueue(t)
		c.Once(v)
		job := commands.Enqueue{ID: id(1), Queue: "mail", Payload: []byte("p")}
		if _, err := q.Enqueue(t.Context(), "cli:test", job); !errors.Is(err, ledger.ErrUnknown) {
			t.Fatalf("enqueue: got %v, want ErrUnknown", err)
		}
		again, err := q.Enqueue(t.Context(), "cli:test", job)
		if err != nil || again[0].Existing != (v == commandstest.Unacknowledged) {
			t.Fatalf("enqueue again: %+v, %v", again, err)
		}
		c.Once(v)
		request := commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("w")}
		mine, err := q.Claim(t.Context(), request)
		if v == commandstest.RolledBack {
			if !errors.Is(err, ledger.ErrUnknown) {
				t.Fatalf("claim: got %v, want ErrUnknown", err)
			}
			mine, err = q.Claim(t.Context(), request)
		}
		if err != nil || len(mine) != 1 || mine[0].Attempt != 1 || string(mine[0].Payload) != "p" {
			t.Fatalf("claim: got %+v, %v, want the job that was asked for", mine, err)
		}
		c.Once(v)
		end := commands.Succeed{Token: mine[0].Token, Result: []byte("r")}
		if _, err := q.Apply(t.Context(), "worker:w", mine[0].ID, end); !errors.Is(err, ledger.ErrUnknown) {
			t.Fatalf("succeed: got %v, want ErrUnknown", err)
		}
		if got := q.Tail() == 3; got != (v == commandstest.Unacknowledged) {
			t.Errorf("durable in spite of the error: %t", got)
		}
		if got := q.do(mine[0], end); got.State != event.SucceededState || q.Tail() != 3 {
			t.Errorf("succeed again: %+v, %d events", got, q.Tail())
		}
	}
}
