package commands_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/status"
)

// copied returns another service on a copy of q's ledger, with the same clock.
func (q *queue) copied() *queue {
	q.T.Helper()
	path := filepath.Join(q.T.TempDir(), "copy.db")
	if _, err := q.Store.Vacuum(q.T.Context(), path); err != nil {
		q.T.Fatal(err)
	}
	c := &queue{&commandstest.Scenario{T: q.T, Now: q.Now}}
	store := ledgertest.OpenAt(q.T, path)
	store.Now = func() time.Time { return q.Now }
	c.Service = &commands.Service{Store: store}
	q.T.Cleanup(c.Verify)
	return c
}

// lost returns where the histories of q and of the other diverge, and what q has recorded since.
func (q *queue) lost(other *queue) (same int64, l audit.Lost) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) error {
		return other.Store.Read(q.T.Context(), func(copy *ledger.Tx) (err error) {
			if same, err = audit.CommonPrefix(q.T.Context(), tx, copy); err == nil {
				l, err = audit.LostAfter(q.T.Context(), tx, same)
			}
			return err
		})
	})
	if err != nil {
		q.T.Fatal(err)
	}
	return same, l
}

func TestRestoreReportsWhatTheCopyLacks(t *testing.T) {
	ledgertest.OfSQLite(t)
	q := newQueue(t)
	end := func(j projection.Job) {
		t.Helper()
		if _, err := q.Apply(t.Context(), "worker:w", j.ID,
			commands.Succeed{Token: j.Token, Result: []byte("ok")}); err != nil {
			t.Fatal(err)
		}
	}
	erase := func(j projection.Job) {
		t.Helper()
		if _, err := q.Apply(t.Context(), "cli:test", j.ID, commands.Erase{Reason: "asked for"}); err != nil {
			t.Fatal(err)
		}
	}
	q.enqueue(commands.Enqueue{Payload: []byte("1")})
	ended := q.claimOne("w")
	end(ended)
	q.enqueue(commands.Enqueue{Payload: []byte("2")})
	held := q.claimOne("w")
	c := q.copied()
	if same, l := q.lost(c); same != 5 || l.Events != 0 || !l.Since.IsZero() || l.Enqueued+l.Ended != 0 ||
		l.Erased != nil {
		t.Errorf("of a copy of all: %d, %+v", same, l)
	}
	q.Now = q.Now.Add(time.Minute)
	since := q.Now
	end(held)
	erase(ended)
	q.Now = q.Now.Add(time.Minute)
	q.enqueue(commands.Enqueue{Payload: []byte("3")})
	third := q.claimOne("w")
	end(third)
	erase(third)
	same, l := q.lost(c)
	if same != 5 || l.Events != 6 || !l.Since.Equal(since) || l.Enqueued != 1 || l.Ended != 1 ||
		!slices.Equal(l.Erased, []event.JobID{ended.ID}) {
		t.Errorf("got %d, %+v", same, l)
	}
	if same, l := c.lost(q); same != 5 || l.Events != 0 {
		t.Errorf("the other way round: %d, %+v", same, l)
	}

	// The copy continues differently: only the earlier events are common.
	lost := int(l.Events)
	if err := c.Restored(t.Context(), "cli:test", event.Restored{From: "monday.db", Events: 5,
		Lost: &lost}); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		c.enqueue(commands.Enqueue{})
	}
	if same, l := q.lost(c); same != 5 || l.Events != 6 {
		t.Errorf("parted: %d, %+v", same, l)
	}
	if same, l := c.lost(q); same != 5 || l.Events != 10 || l.Enqueued != 9 {
		t.Errorf("parted, the other way round: %d, %+v", same, l)
	}
	if same, l := q.lost(newQueue(t)); same != 0 || l.Events != 11 || l.Enqueued != 3 {
		t.Errorf("of an empty one: %d, %+v", same, l)
	}
}

func TestRestoredIsTheLastEvent(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	if err := q.Restored(t.Context(), "cli:test",
		event.Restored{From: strings.Repeat("x", commands.MaxReason+1)}); !errors.Is(err, commands.ErrInvalid) {
		t.Errorf("a name that is too long: %v", err)
	}
	if err := q.Restored(t.Context(), "cli:test", event.Restored{From: "monday.db", Events: 1}); err != nil {
		t.Fatal(err)
	}
	err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{After: 1}) {
			if err != nil {
				return err
			}
			if b, ok := e.Body.(*event.Restored); !ok || e.Pos != 2 || b.From != "monday.db" || b.Events != 1 ||
				b.Lost != nil {
				t.Errorf("got %+v, %+v", e, e.Body)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHealthOverdueLeases(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	q.enqueue(commands.Enqueue{})
	q.claimOne("a") // a lease of a minute
	q.claimOne("b", func(r *commands.ClaimRequest) { r.Lease = 10 * time.Minute })
	start := q.Now
	for _, step := range []struct {
		after  time.Duration
		leases int64
		oldest time.Duration
	}{{30 * time.Second, 0, 0}, {3*time.Minute + 59*time.Second, 0, 0}, {4 * time.Minute, 1, time.Minute},
		{21 * time.Minute, 1, time.Minute}, {22 * time.Minute, 2, time.Minute}} {
		q.Now = start.Add(step.after)
		err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			for _, m := range []projection.Moment{projection.Now(q.Now), {Pos: 4, At: q.Now}} {
				all, err := status.Queues{At: m}.Read(t.Context(), tx)
				if err != nil {
					return err
				}
				if o := all[0]; o.Overdue != step.leases || step.leases > 0 && o.OldestLease.Sub(start) != step.oldest {
					t.Errorf("after %s: %+v", step.after, o)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestHealthStrandedJobs(t *testing.T) {
	q := newQueue(t)
	stranded := func() (list []string) {
		t.Helper()
		err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			all, err := status.Queues{At: projection.Now(q.Now), Stranded: true}.Read(t.Context(), tx)
			var found []status.Stranded
			for _, queue := range all {
				found = append(found, queue.Stranded...)
			}
			for _, s := range found {
				text := []string{s.Queue, s.Version, strings.Join(s.Requires, "+"), strings.Repeat("x", int(s.Jobs)),
					strings.Repeat("w", len(s.Serving)), q.Now.Sub(s.Since).String()}
				list = append(list, strings.Join(text, " "))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(list)
		return list
	}
	expect := func(want ...string) {
		t.Helper()
		if got := stranded(); !slices.Equal(got, want) {
			t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
	w := worker("w")
	if err := q.WorkerStarted(t.Context(), w, []string{"mail"}, []string{"cpu"}); err != nil {
		t.Fatal(err)
	}
	q.enqueue(commands.Enqueue{Requires: []string{"cpu"}})
	q.enqueue(commands.Enqueue{Requires: []string{"gpu"}})
	q.enqueue(commands.Enqueue{Requires: []string{"gpu"}, Priority: 7})
	q.enqueue(commands.Enqueue{Version: "v9"})
	q.enqueue(commands.Enqueue{Queue: "sms"})
	q.enqueue(commands.Enqueue{Queue: "sms", Version: "v1"})
	q.enqueue(commands.Enqueue{Queue: "later", RunAt: q.Now.Add(time.Hour)})
	expect() // not overdue for long enough
	q.Now = q.Now.Add(6 * time.Minute)
	if err := q.Present(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	expect("mail  gpu xx w 6m0s", "mail v9  x w 6m0s", "sms   x  6m0s", "sms v1  x  6m0s")

	// A script that claims from a queue need not report what it can take.
	j := q.claimOne("script", func(r *commands.ClaimRequest) { r.Queues = []string{"sms"} })
	expect("mail  gpu xx w 6m0s", "mail v9  x w 6m0s")
	if _, err := q.Apply(t.Context(), "worker:script", j.ID, commands.Succeed{Token: j.Token}); err != nil {
		t.Fatal(err)
	}

	// A paused queue shows its reason. A worker that has stopped takes no jobs.
	if _, err := q.Pause(t.Context(), "cli:test", "sms", ""); err != nil {
		t.Fatal(err)
	}
	q.Now = q.Now.Add(2 * time.Hour)
	expect("later   x  1h6m0s", "mail  cpu x  2h6m0s", "mail  gpu xx  2h6m0s", "mail v9  x  2h6m0s")
}
