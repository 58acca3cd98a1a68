package commands_test

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
	limits "jobledger/projection/limit"
	"jobledger/projection/status"
)

// A command that outlives the cancel of its job holds what waits for its end for as long as it is said that
// it lives, and not beyond its last sign of life.
func TestSurvivedCommandHolds(t *testing.T) {
	q := newQueue(t)
	parent := q.enqueue(commands.Enqueue{})
	child := q.enqueue(commands.Enqueue{Queue: "other", After: on(event.OnFinished, parent)})
	held := q.claimOne("w")
	stuck := commands.Heartbeat{Token: held.Token, Lease: time.Minute, CannotEnd: "pid 7 (sudo) belongs to root"}
	q.do(q.fresh(parent.ID), commands.Cancel{})
	q.do(q.fresh(parent.ID), commands.Retry{})
	lost := func() (found []projection.LostClaim) {
		t.Helper()
		err := q.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			found, err = projection.LostClaims(t.Context(), tx, projection.Moment{Pos: q.Tail(), At: q.Now})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	events := q.Tail()
	begun, pause := q.Now, 20*time.Second
	for ; q.Now.Before(begun.Add(26 * time.Hour)); q.Now = q.Now.Add(pause) {
		if q.Now.Sub(begun) > 10*time.Minute {
			pause = 3 * time.Minute // events are few by then
		}
		q.refuses(q.fresh(parent.ID), stuck, commands.ErrCancelled)
		for _, id := range []event.JobID{parent.ID, child.ID} {
			if j := q.fresh(id); j.State != event.Queued || !j.RunAt.After(q.Now.Add(pause-time.Second)) {
				t.Fatalf("at %s, job %s is %s and runs at %s", q.Now, id, j.State, j.RunAt)
			}
		}
	}
	if got := q.Tail() - events; got > 1700 {
		t.Errorf("%d events in 26 hours", got)
	}
	found := lost()
	if len(found) != 1 || found[0].CannotEnd != stuck.CannotEnd || !found[0].Until.After(q.Now) {
		t.Fatalf("the lost claims are %+v", found)
	}
	err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		all, err := status.Workers{At: projection.Now(q.Now)}.Read(t.Context(), tx)
		if err == nil && (len(all) != 1 || len(all[0].Lost) != 1) {
			t.Errorf("the workers are %+v", all)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// After the last sign of life.
	q.Now = found[0].Until
	if len(lost()) != 0 {
		t.Error("it holds beyond what was said last")
	}
	if c := q.claimOne("w2"); c.ID != parent.ID {
		t.Errorf("%s was claimed", c.ID)
	}
	q.refuses(q.fresh(parent.ID), stuck, commands.ErrLeaseLost) // of the claim before
}

// The end of the command lets everything run at once, and an operator may have it run before.
func TestSurvivedCommandStops(t *testing.T) {
	for name, test := range map[string]func(q *queue, j projection.Job, token string){
		"it stops": func(q *queue, j projection.Job, token string) {
			q.do(j, commands.ReportStop{Token: token})
			q.refuses(q.fresh(j.ID), commands.Heartbeat{Token: token, Lease: time.Minute, CannotEnd: "pid 7"},
				commands.ErrCancelled)
		},
		"rescheduled": func(q *queue, j projection.Job, token string) {
			q.do(j, commands.Reschedule{RunAt: &q.Now})
			q.Now = q.Now.Add(time.Hour)
			q.refuses(q.fresh(j.ID), commands.Heartbeat{Token: token, Lease: time.Minute, CannotEnd: "pid 7"},
				commands.ErrCancelled)
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			j := q.claimOne("w", func(*commands.ClaimRequest) { q.enqueue(commands.Enqueue{}) })
			q.do(q.fresh(j.ID), commands.Cancel{})
			q.do(q.fresh(j.ID), commands.Retry{})
			for range 5 {
				q.refuses(q.fresh(j.ID), commands.Heartbeat{Token: j.Token, Lease: time.Minute, CannotEnd: "pid 7"},
					commands.ErrCancelled)
				q.Now = q.Now.Add(30 * time.Second)
			}
			test(q, q.fresh(j.ID), j.Token)
			if again := q.claimOne("w2"); again.ID != j.ID {
				t.Errorf("%s was claimed", again.ID)
			}
		})
	}
}

// Beyond the lease too, a command that outlives its cancel keeps its slot of a limit, and its end frees it.
func TestSurvivedCommandKeepsSlot(t *testing.T) {
	for name, spec := range map[string]limits.Spec{"of the queue": {Running: 1}, "of the group": {PerGroup: 1}} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			q.setLimit(spec)
			j := q.claimOne("w", func(*commands.ClaimRequest) { q.enqueue(commands.Enqueue{Group: "acme"}) })
			next := q.enqueue(commands.Enqueue{Group: "acme"})
			q.do(q.fresh(j.ID), commands.Cancel{})
			for range 20 { // of leases
				q.refuses(q.fresh(j.ID), commands.Heartbeat{Token: j.Token, Lease: time.Minute, CannotEnd: "pid 7"},
					commands.ErrCancelled)
				q.Now = q.Now.Add(30 * time.Second)
				if more := q.claim("w2"); len(more) != 0 {
					t.Fatalf("at %s, %s was claimed before its end", q.Now, more[0].ID)
				}
			}
			q.do(q.fresh(j.ID), commands.ReportStop{Token: j.Token})
			if c := q.claimOne("w2"); c.ID != next.ID {
				t.Errorf("%s was claimed", c.ID)
			}
			q.Verify()
		})
	}
}
