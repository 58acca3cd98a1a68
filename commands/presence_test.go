package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
	"jobledger/projection/status"
)

// alive returns the workers that are present, as "name state since seen jobs".
func (q *queue) alive(all bool) (list []string) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) error {
		workers, err := status.Workers{At: projection.Now(q.Now), All: all}.Read(q.T.Context(), tx)
		for _, w := range workers {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s up %s seen %s, %d jobs %s", w.Name, w.State,
				q.Now.Sub(w.StartedAt), q.Now.Sub(w.SeenAt), len(w.Jobs), strings.Join(w.Queues, "+"))))
		}
		return err
	})
	if err != nil {
		q.T.Fatal(err)
	}
	return list
}

func TestPresenceShowsLiveWorkers(t *testing.T) {
	q := newQueue(t)
	expect := func(all bool, want ...string) {
		t.Helper()
		if got := q.alive(all); !slices.Equal(got, want) {
			t.Errorf("at %s, all %t: got\n  %s\nwant\n  %s", q.Now.Format(time.TimeOnly), all,
				strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w, gone := worker("w"), worker("gone")
	check(q.WorkerStarted(t.Context(), w, []string{"mail", "sms"}, []string{"gpu"}))
	check(q.WorkerStarted(t.Context(), gone, []string{"mail"}, nil))
	expect(false, "gone idle up 0s seen 0s, 0 jobs mail", "w idle up 0s seen 0s, 0 jobs mail+sms")

	// Presence is recorded automatically and is not an event.
	q.Now = q.Now.Add(40 * time.Second)
	check(q.Present(t.Context(), w))
	q.Now = q.Now.Add(6 * time.Second)
	expect(false, "gone silent up 46s seen 46s, 0 jobs mail", "w idle up 46s seen 6s, 0 jobs mail+sms")

	// A claimer that never reported its start is known by its jobs, and judged by its lease.
	q.enqueue(commands.Enqueue{})
	q.enqueue(commands.Enqueue{})
	j := q.claim("script")[0]
	q.claim("w")
	expect(false, "gone silent up 46s seen 46s, 0 jobs mail", "script working up 0s seen 0s, 1 jobs",
		"w working up 46s seen 0s, 1 jobs mail+sms")
	q.Now = q.Now.Add(50 * time.Second)
	check(q.Present(t.Context(), w))
	_, err := q.Apply(t.Context(), "worker:script", j.ID, commands.Heartbeat{Token: j.Token, Lease: time.Minute})
	check(err)
	q.Now = q.Now.Add(10 * time.Second)
	expect(false, "gone silent up 1m46s seen 1m46s, 0 jobs mail", "script working up 1m0s seen 10s, 1 jobs",
		"w working up 1m46s seen 10s, 1 jobs mail+sms")
	q.Now = q.Now.Add(time.Minute)
	expect(false, "gone silent up 2m46s seen 2m46s, 0 jobs mail", "script silent up 2m0s seen 1m10s, 1 jobs",
		"w silent up 2m46s seen 1m10s, 1 jobs mail+sms")

	// A worker that stopped is no longer listed, and neither is one that was not seen for a day.
	check(q.WorkerStopped(t.Context(), w))
	if got := q.alive(false); !strings.HasPrefix(got[2], "w ") {
		t.Errorf("it stopped, and still holds a job: %q", got)
	}
	q.Now = q.Now.Add(25 * time.Hour)
	q.sweep()
	expect(false)
	all := q.alive(true)
	if len(all) != 2 || !strings.HasPrefix(all[0], "gone silent ") || !strings.HasPrefix(all[1], "w stopped ") {
		t.Errorf("all: %q", all)
	}

	// A process may start again under its name, and even with the same identity.
	check(q.WorkerStarted(t.Context(), w, []string{"reports"}, nil))
	if got := q.alive(false); len(got) != 1 || !strings.HasPrefix(got[0], "w idle ") ||
		!strings.HasSuffix(got[0], " mail+reports+sms") {
		t.Errorf("again: %q", got)
	}
}

// TestPresenceOfDeadWorkers: one worker dies while it holds a job, and one while it is idle.
func TestPresenceOfDeadWorkers(t *testing.T) {
	q := newQueue(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want ...string) {
		t.Helper()
		if got := q.alive(false); !slices.Equal(got, want) {
			t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
	start := q.Now
	busy, idle := worker("busy"), worker("idle")
	check(q.WorkerStarted(t.Context(), busy, []string{"mail"}, nil))
	check(q.WorkerStarted(t.Context(), idle, []string{"mail"}, nil))
	q.enqueue(commands.Enqueue{})
	q.enqueue(commands.Enqueue{})

	// It was seen when it last wrote, if that is later than its presence.
	j := q.claimOne("busy", func(r *commands.ClaimRequest) { r.Lease = 2 * time.Second })
	q.Now = q.Now.Add(time.Second)
	_, err := q.Apply(t.Context(), "worker:busy", j.ID, commands.Succeed{Token: j.Token})
	check(err)
	expect("busy idle up 1s seen 0s, 0 jobs mail", "idle idle up 1s seen 1s, 0 jobs mail")

	// The job of a dead worker is reclaimed before three presence records are missed.
	q.claimOne("busy", func(r *commands.ClaimRequest) { r.Lease = 2 * time.Second })
	q.Now = q.Now.Add(20 * time.Second)
	check(q.Present(t.Context(), idle))
	q.sweep()
	expect("busy silent up 21s seen 20s, 0 jobs mail", "idle idle up 21s seen 0s, 0 jobs mail")

	// As of an earlier time, presence shows when the idle one died.
	died := q.Now
	q.Now = q.Now.Add(10 * time.Minute)
	err = q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for _, tt := range []struct {
			at   time.Time
			want string
		}{{start.Add(time.Second), "[busy working idle idle]"},
			{start.Add(10 * time.Second), "[busy working idle idle]"},
			{died, "[busy silent idle idle]"}, {died.Add(46 * time.Second), "[busy silent idle silent]"}} {
			m, err := projection.AtTime(t.Context(), tx, tt.at)
			if err != nil {
				return err
			}
			then, err := status.Workers{At: m}.Read(t.Context(), tx)
			var got []string
			for _, w := range then {
				got = append(got, w.Name, string(w.State))
			}
			if fmt.Sprint(got) != tt.want {
				t.Errorf("after %s: got %q, want %q", tt.at.Sub(start), got, tt.want)
			}
			if err != nil {
				return err
			}
		}
		from, err := projection.AtPos(t.Context(), tx, 0)
		if err != nil {
			return err
		}
		to, err := projection.AtTime(t.Context(), tx, q.Now)
		if err != nil {
			return err
		}
		d, err := status.Compare(t.Context(), tx, from, to, 0)
		if len(d.Lost) != 1 || d.Lost[0].Worker.Name != "busy" || len(d.Silent) != 1 ||
			d.Silent[0].Name != "idle" ||
			!d.Silent[0].SeenAt.Equal(died) {
			t.Errorf("the difference: lost %+v, silent %+v", d.Lost, d.Silent)
		}
		return err
	})
	check(err)
}

// TestSilentInRetrospect: a worker that dies while it is idle is silent as of the first presence that it
// missed, or as of the start of its successor. Up to now, a living one may be late.
func TestSilentInRetrospect(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dead, lives, next := worker("dead"), worker("lives"), worker("dead")
	next.Boot, dead.Host, next.Host = "boot-next", "alpha", "alpha"
	check(q.WorkerStarted(t.Context(), dead, []string{"mail"}, nil))
	check(q.WorkerStarted(t.Context(), lives, []string{"mail"}, nil))
	died := q.Now
	state := func(after time.Duration, live bool) (states string) {
		t.Helper()
		check(q.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			var workers []status.Worker
			if live {
				workers, err = status.Workers{At: projection.Now(q.Now)}.Read(t.Context(), tx)
			} else {
				m, err := projection.AtTime(t.Context(), tx, died.Add(after))
				if err != nil {
					return err
				}
				if workers, err = (status.Workers{At: m}).Read(t.Context(), tx); err != nil {
					return err
				}
				_, both, err := status.Both{At: m}.Read(t.Context(), tx)
				if err != nil || fmt.Sprint(both) != fmt.Sprint(workers) {
					t.Errorf("after %s: with the queues %v, %v, alone %v", after, both, err, workers)
				}
			}
			for _, w := range workers {
				states += strings.TrimPrefix(w.Boot, "boot-") + " " + string(w.State) + " "
			}
			return err
		}))
		return strings.TrimSpace(states)
	}
	want := func(after time.Duration, live bool, want string) {
		t.Helper()
		if got := state(after, live); got != want {
			t.Errorf("asked after %s, after %s, live %t: %s, want %s", q.Now.Sub(died), after, live, got, want)
		}
	}
	q.Now = died.Add(20 * time.Second)
	want(0, true, "dead idle lives idle")
	want(20*time.Second, false, "dead idle lives idle") // it may be late
	check(q.Present(t.Context(), lives))
	check(q.WorkerStarted(t.Context(), next, []string{"mail"}, nil))
	want(0, true, "dead idle next idle lives idle")
	q.Now = died.Add(21 * time.Second)
	want(0, true, "dead silent next idle lives idle") // it has a successor
	for range 4 {
		q.Now = q.Now.Add(15 * time.Second)
		check(q.Present(t.Context(), lives))
		check(q.Present(t.Context(), next))
	}
	want(14*time.Second, false, "dead idle lives idle")
	want(16*time.Second, false, "dead silent lives idle")
	want(25*time.Second, false, "dead silent next idle lives idle")
	want(60*time.Second, false, "dead silent next idle lives idle")

	// The same for one whose successor came at once.
	last := worker("lives")
	last.Boot = "boot-last"
	q.Now = q.Now.Add(5 * time.Second)
	check(q.WorkerStarted(t.Context(), last, []string{"mail"}, nil))
	at := q.Now.Sub(died)
	q.Now = q.Now.Add(10 * time.Minute)
	want(at-time.Second, false, "dead silent next idle lives idle")
	want(at, false, "dead silent next idle lives silent last idle")

	// The report of what fell silent says so too.
	check(q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		to, err := projection.AtTime(t.Context(), tx, died.Add(10*time.Second))
		if err != nil {
			return err
		}
		found, err := query.Silent{From: projection.Moment{}, To: to}.Read(t.Context(), tx)
		if err != nil || len(found) != 1 || found[0].Boot != dead.Boot || !found[0].SeenAt.Equal(died) {
			t.Errorf("silent %+v, %v", found, err)
		}
		return err
	}))
}

// TestSilentCountsTakeovers: a process that only took a claim over lived then.
func TestSilentCountsTakeovers(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	first, second := worker("w"), worker("w")
	second.Boot = "boot-second"
	check(q.WorkerStarted(t.Context(), first, []string{"mail"}, nil))
	check(q.WorkerStarted(t.Context(), second, []string{"mail"}, nil))
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("w")
	q.Now = q.Now.Add(30 * time.Second)
	_, err := q.Apply(t.Context(), "worker:w", j.ID,
		commands.TakeOver{Token: j.Token, Process: second, Lease: time.Minute})
	check(err)
	took := q.Now
	q.Now = q.Now.Add(5 * time.Minute)
	if lost := q.sweep(); len(lost) != 1 {
		t.Fatalf("%d jobs were taken back", len(lost))
	}
	check(q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		to, err := projection.AtTime(t.Context(), tx, q.Now)
		if err != nil {
			return err
		}
		found, err := query.Silent{To: to, Worker: second.Boot}.Read(t.Context(), tx)
		if err != nil || len(found) != 1 || !found[0].SeenAt.Equal(took) || found[0].Taken != 1 ||
			found[0].Holds != 0 {
			t.Errorf("silent: %+v, %v, want one seen at %s that lost a job", found, err, took)
		}
		found, err = query.Silent{To: to}.Read(t.Context(), tx)
		if len(found) != 2 || found[0].Boot != first.Boot || found[0].Taken != 0 {
			t.Errorf("all silent: %+v, %v", found, err)
		}
		return err
	}))
}
