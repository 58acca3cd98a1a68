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
	"jobledger/projection/status"
)

// alive returns the workers that are present, as "name state since seen jobs".
func (q *queue) alive(all bool) (list []string) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) error {
		workers, err := status.Workers(q.T.Context(), tx, q.Now, all)
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

	// Presence is recorded automatically and is no event.
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
			then, err := status.WorkersAsOf(t.Context(), tx, m, false)
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
