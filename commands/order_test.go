package commands_test

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Jobs that come back into a paused queue, by whatever way, are not claimed before it is resumed.
func TestPausedQueueStaysPaused(t *testing.T) {
	q := newQueue(t)
	failed, lost := q.enqueue(commands.Enqueue{}), q.enqueue(commands.Enqueue{})
	released := q.enqueue(commands.Enqueue{})
	claims := q.claim("a", limit(3))
	q.command(failed, commands.Fail{Token: claims[0].Token, NoRetry: true})
	q.command(released, commands.Release{Token: claims[2].Token})
	parent := q.enqueue(commands.Enqueue{Queue: "other"})
	child := q.enqueue(commands.Enqueue{After: after(parent)})
	held := q.enqueue(commands.Enqueue{Hold: true})
	later := q.enqueue(commands.Enqueue{RunAt: q.Now.Add(5 * time.Hour)})
	if _, err := q.Pause(t.Context(), "cli:test", "mail", "smtp is down"); err != nil {
		t.Fatal(err)
	}
	q.Now = q.Now.Add(time.Hour) // the lease of one is over
	if got := q.sweep(); len(got) != 1 || got[0].ID != lost.ID {
		t.Fatalf("reclaimed %v", got)
	}
	other := q.claimOne("b", func(r *commands.ClaimRequest) { r.Queues = []string{"other"} })
	q.command(parent, commands.Succeed{Token: other.Token})
	q.command(failed, commands.Retry{})
	q.command(held, commands.Unblock{})
	q.command(later, commands.Reschedule{RunAt: &q.Now})
	k := schedule.Keeper{Service: q.Service, Actor: "cli:test"}
	spec := event.ScheduleSet{Name: "s", Queue: "mail", Every: time.Hour}
	if _, _, err := k.Set(t.Context(), spec, ""); err != nil {
		t.Fatal(err)
	}
	run, err := k.Run(t.Context(), "s", "")
	if err != nil {
		t.Fatal(err)
	}
	q.Now = q.Now.Add(time.Hour)
	if got := q.claim("a", limit(20)); len(got) != 0 {
		t.Fatalf("claimed %d jobs of a paused queue", len(got))
	}
	if _, err := q.Resume(t.Context(), "cli:test", "mail", ""); err != nil {
		t.Fatal(err)
	}
	found := make(map[event.JobID]bool)
	for _, j := range q.claim("a", limit(20)) {
		found[j.ID] = true
	}
	for name, j := range map[string]projection.Job{"failed": failed, "lost": lost, "released": released,
		"child": child, "held": held, "later": later, "schedule": run} {
		if !found[j.ID] {
			t.Errorf("the job %s was not claimed after the queue was resumed", name)
		}
	}
	q.Verify()
}

// Jobs that wait for a rate start by priority, and then in the order in which they came. After an idle time
// the next start is at once.
func TestRateKeepsOrder(t *testing.T) {
	q := newQueue(t)
	q.setLimit(perSecond(10, 0))
	want := make([][]event.JobID, 4)
	for n := range 24 {
		j := q.enqueue(commands.Enqueue{Priority: n % 4})
		want[3-n%4] = append(want[3-n%4], j.ID)
	}
	for _, ids := range want {
		for n, id := range ids {
			if j := q.claimOne("a", limit(2)); j.ID != id {
				t.Fatalf("claimed the job with priority %d, want number %d of the next priority", j.Priority, n)
			}
			q.Now = q.Now.Add(100 * time.Millisecond)
		}
	}
	q.Now = q.Now.Add(time.Minute)
	q.enqueue(commands.Enqueue{})
	q.claimOne("a")
	q.Verify()
}

// Jobs whose workers die come back behind others that are ready, so they do not keep those from their turn.
func TestCrashersHoldUpNoOther(t *testing.T) {
	q := newQueue(t)
	bad := make(map[event.JobID]bool)
	for range 3 {
		bad[q.enqueue(commands.Enqueue{MaxAttempts: 100}).ID] = true
	}
	for range 12 {
		q.enqueue(commands.Enqueue{})
	}
	claims := 0
	for done := 0; done < 12; claims++ {
		jobs := q.claim("a", limit(1))
		if len(jobs) == 0 {
			t.Fatalf("after %d claims, %d good jobs are done, and nothing is ready", claims, done)
		}
		if bad[jobs[0].ID] {
			q.Now = jobs[0].LeaseUntil
			q.sweep()
			continue
		}
		done++
		q.succeed(jobs[0])
	}
	if claims > 15+3 { // each bad one may have a second turn meanwhile
		t.Errorf("12 good jobs took %d claims", claims)
	}
	q.Verify()
}
