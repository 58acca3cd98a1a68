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
)

// alive tells who is there, as "name state since seen jobs".
func (q *queue) alive(all bool) (list []string) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) error {
		workers, err := projection.Workers(q.T.Context(), tx, q.Now, all)
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
			t.Errorf("at %s, all %t: got\n  %s\nwant\n  %s", q.Now.Format(time.TimeOnly), all, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
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

	// Being there is told by itself, and takes no event.
	q.Now = q.Now.Add(40 * time.Second)
	check(q.Present(t.Context(), w))
	q.Now = q.Now.Add(6 * time.Second)
	expect(false, "gone silent up 46s seen 46s, 0 jobs mail", "w idle up 46s seen 6s, 0 jobs mail+sms")

	// A claimer that never said that it started is known by what it holds, and judged by its lease.
	q.enqueue(commands.Enqueue{})
	q.enqueue(commands.Enqueue{})
	j := q.claim("script")[0]
	q.claim("w")
	expect(false, "gone silent up 46s seen 46s, 0 jobs mail", "script working up 0s seen 0s, 1 jobs", "w working up 46s seen 0s, 1 jobs mail+sms")
	q.Now = q.Now.Add(50 * time.Second)
	check(q.Present(t.Context(), w))
	_, err := q.Apply(t.Context(), "worker:script", j.ID, commands.Heartbeat{Token: j.Token, Lease: time.Minute})
	check(err)
	q.Now = q.Now.Add(10 * time.Second)
	expect(false, "gone silent up 1m46s seen 1m46s, 0 jobs mail", "script working up 1m0s seen 10s, 1 jobs", "w working up 1m46s seen 10s, 1 jobs mail+sms")
	q.Now = q.Now.Add(time.Minute)
	expect(false, "gone silent up 2m46s seen 2m46s, 0 jobs mail", "script silent up 2m0s seen 1m10s, 1 jobs", "w silent up 2m46s seen 1m10s, 1 jobs mail+sms")

	// One that said goodbye, and one that is silent for a day, are history.
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

	// A process may start again under its name, and even as itself.
	check(q.WorkerStarted(t.Context(), w, []string{"reports"}, nil))
	if got := q.alive(false); len(got) != 1 || !strings.HasPrefix(got[0], "w idle ") || !strings.HasSuffix(got[0], " mail+reports+sms") {
		t.Errorf("again: %q", got)
	}
}
