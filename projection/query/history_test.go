package query_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// busy returns a ledger in which jobs of two queues did all that makes them ready or not: dependencies,
// delays, other payloads, priorities and times, failures, cancelled jobs that are retried.
func busy(t *testing.T, steps int) *commandstest.Scenario {
	t.Helper()
	s := commandstest.New(t)
	r, ctx := rand.New(rand.NewPCG(5, 6)), t.Context()
	var ids []event.JobID
	var held []event.JobID
	any := func(all []event.JobID) event.JobID { return all[r.IntN(len(all))] }
	for i := range steps {
		s.Now = s.Now.Add(time.Duration(r.Int64N(int64(3 * time.Second))).Truncate(time.Microsecond))
		queue := []string{"mail", "render"}[r.IntN(2)]
		var err error
		switch what := r.IntN(10); {
		case i < 5 || what < 3:
			e := commands.Enqueue{Queue: queue, Payload: []byte{byte(i)}}
			switch r.IntN(4) {
			case 0:
				e.RunAt = s.Now.Add(time.Duration(r.IntN(20)) * time.Second)
			case 1:
				if len(ids) > 0 {
					e.After = []commands.Dependency{{Job: any(ids)}}
				}
			case 2:
				e.Key, e.UniqueWhile, e.OnDuplicate = "k", event.WhileQueued, commands.ReplaceDuplicate
			}
			var made []commands.Enqueued
			made, err = s.Enqueue(ctx, "cli:test", e)
			for _, m := range made {
				ids = append(ids, m.ID)
			}
		case what < 6:
			var found []projection.Job
			who := event.Worker{Name: "w-" + queue, Boot: "boot-" + queue, Host: "build7", PID: 7}
			found, err = s.Claim(ctx, commands.ClaimRequest{Queues: []string{queue}, Limit: 1, Worker: who,
				Lease: time.Hour})
			for _, j := range found {
				held = append(held, j.ID)
			}
		case what < 8 && len(held) > 0:
			id := any(held)
			j, getErr := s.Get(ctx, id)
			if err = getErr; err != nil || !j.State.Held() {
				break
			}
			switch r.IntN(4) {
			case 0:
				_, err = s.Fail(ctx, j, commands.Fail{})
			case 1:
				_, err = s.Release(ctx, j, commands.Release{Delay: time.Duration(r.IntN(9)) * time.Second})
			case 2:
				_, err = s.Heartbeat(ctx, j, commands.Heartbeat{Lease: time.Hour})
			default:
				_, err = s.Complete(ctx, j, nil)
			}
		case what == 8:
			priority, at := r.IntN(9), s.Now.Add(time.Duration(r.IntN(30)-10)*time.Second)
			c := commands.Reschedule{Priority: &priority}
			if r.IntN(2) == 0 {
				c = commands.Reschedule{RunAt: &at}
			}
			_, err = s.Reschedule(ctx, "cli:ada", any(ids), c)
		default:
			id := any(ids)
			if _, err = s.Cancel(ctx, "cli:ada", id, "not now"); err == nil && r.IntN(2) == 0 {
				s.Now = s.Now.Add(time.Second)
				_, err = s.Retry(ctx, "cli:ada", id, commands.Retry{Now: true})
			}
		}
		if err != nil && !errors.Is(err, commands.ErrConflict) {
			t.Fatal(err)
		}
	}
	return s
}

// eachEvent calls fn for each event, the first one first.
func eachEvent(t *testing.T, tx *ledger.Tx, fn func(event.Event)) {
	t.Helper()
	for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		fn(e)
	}
}
