package schedule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

var consumer = commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "w", Boot: "boot1"},
	Lease: 24 * time.Hour}

// claim returns the next job of the queue; the zero Job if there is none to claim.
func (r *rig) claim() (j projection.Job) {
	r.Helper()
	jobs, err := r.Claim(r.Context(), consumer)
	if err != nil {
		r.Fatal(err)
	}
	if len(jobs) > 0 {
		j = jobs[0]
	}
	return j
}

func (r *rig) apply(j projection.Job, c commands.Command) {
	r.Helper()
	if _, err := r.Apply(r.Context(), "cli:ann@host", j.ID, c); err != nil {
		r.Fatalf("%T: %v", c, err)
	}
}

// next lets an hour pass and returns the job of the tick; the zero Job if it made none.
func (r *rig) next() (j projection.Job) {
	r.Helper()
	r.wait(time.Hour)
	if done := r.tick(); len(done.Jobs) > 0 {
		j = done.Jobs[0]
	}
	return j
}

func TestTickerWaitsForTheLastJob(t *testing.T) {
	r := newRig(t)
	r.set(event.ScheduleSet{Every: time.Hour, Overlap: "wait"})
	first := r.next()
	if got := r.claim(); got.ID != first.ID {
		t.Fatalf("claimed %+v, want %s", got, first.ID)
	} else {
		first = got
	}
	second := r.next()
	if second.State != event.Blocked || len(second.After) != 1 ||
		second.After[0] != event.FormatReference(first.ID, event.OnFinished) {
		t.Fatalf("the second is %s after %v, want blocked after the end of %s", second.State, second.After,
			first.ID)
	}
	if third := r.next(); third.ID != "" {
		t.Fatalf("a second one waits: %+v", third)
	}
	r.apply(second, commands.Cancel{}) // the first is still at work
	fourth := r.next()
	if fourth.State != event.Blocked {
		t.Fatalf("after the one that waited was cancelled, the next is %s, want blocked", fourth.State)
	}
	if got := r.claim(); got.ID != "" {
		t.Fatalf("claimed %s while %s runs", got.ID, first.ID)
	}
	r.apply(first, commands.Fail{Token: first.Token, NoRetry: true}) // any end will do
	got := r.claim()
	if got.ID != fourth.ID {
		t.Fatalf("claimed %+v, want %s", got, fourth.ID)
	}
	r.apply(got, commands.Succeed{Token: got.Token})
	r.apply(first, commands.Retry{Reason: "fixed"})
	if fifth := r.next(); fifth.State != event.Blocked {
		t.Errorf("the job of a tick is %s while an earlier one is retried, want blocked", fifth.State)
	}
	last := r.claim()
	r.apply(last, commands.Succeed{Token: last.Token})
	fifth := r.claim()
	r.apply(fifth, commands.Succeed{Token: fifth.Token})
	if sixth := r.next(); sixth.State != event.Queued {
		t.Errorf("the job of a tick is %s, want queued: all others have ended", sixth.State)
	}
}

// TestTickerCatchesUpWithWaiting has missed ticks with a job for each: one runs, one waits.
func TestTickerCatchesUpWithWaiting(t *testing.T) {
	r := newRig(t)
	r.set(event.ScheduleSet{Every: time.Hour, Overlap: "wait", CatchUp: "all"})
	r.wait(4 * time.Hour)
	r.tick()
	want := "job 28T13:00, job 28T14:00, overlap 1 28T15:00-28T15:00, overlap 1 28T16:00-28T16:00"
	if got := first(r.log(0)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestTickerWaitsUnderAnyCommands ticks, claims, ends and cancels at random: never are two jobs of the
// schedule at work or two waiting, and each tick is a job or skipped.
func TestTickerWaitsUnderAnyCommands(t *testing.T) {
	for seed := range uint64(ledgertest.Size(1, 2, 30)) {
		dice := rand.New(rand.NewPCG(seed, 2))
		r := newRig(t)
		r.set(event.ScheduleSet{Every: time.Hour, Overlap: "wait",
			CatchUp: []string{"last", "all"}[dice.IntN(2)]})
		waited := 0
		for range 60 {
			r.wait(time.Duration(dice.IntN(150)) * time.Minute)
			r.tick()
			var live, blocked, open []projection.Job
			err := r.Store.Read(t.Context(), func(tx *ledger.Tx) error {
				jobs, err := projection.List(t.Context(), tx, projection.Filter{})
				for _, j := range jobs {
					switch {
					case j.State.Held():
						live = append(live, j)
					case j.State == event.Blocked:
						blocked = append(blocked, j)
					}
					if !j.State.Final() {
						open = append(open, j)
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(live) > 1 || len(blocked) > 1 {
				t.Fatalf("seed %d: %d at work, %d waiting", seed, len(live), len(blocked))
			}
			waited += len(blocked)
			switch n := dice.IntN(6); {
			case n == 0 && len(blocked) > 0:
				r.apply(blocked[0], commands.Cancel{})
			case n == 1 && len(open) > 0:
				r.apply(open[dice.IntN(len(open))], commands.Cancel{})
			case n < 4:
				r.claim()
			case len(live) > 0 && n == 4:
				r.apply(live[0], commands.Succeed{Token: live[0].Token})
			case len(live) > 0:
				r.apply(live[0], commands.Fail{Token: live[0].Token})
			}
		}
		if waited == 0 {
			t.Errorf("seed %d: none ever waited", seed)
		}
	}
}
