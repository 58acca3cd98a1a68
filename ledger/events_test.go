package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// book appends events one second apart and keeps each of them as a reader must see it.
type book struct {
	t     *testing.T
	store *ledger.Store
	seq   map[int64]int64
	all   []event.Event
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{t: t, store: open(t), seq: make(map[int64]int64)}
	b.store.Now = func() time.Time { return ledgertest.Epoch.Add(time.Duration(len(b.all)) * time.Second) }
	return b
}

func (b *book) add(e event.Event) event.Event {
	b.t.Helper()
	write(b.t, b.store, func(tx *ledger.Tx) error {
		e.Pos, e.At = tx.Next(), tx.At()
		if body, ok := e.Body.(*event.Enqueued); ok {
			e.N, body.RunAt = e.Pos, e.At
		}
		if e.N != 0 && e.Kind().HasSeq() {
			e.Seq = b.seq[e.N] + 1
		}
		return tx.Append(b.t.Context(), e)
	})
	if e.Seq != 0 {
		b.seq[e.N] = e.Seq
	}
	b.all = append(b.all, e)
	return e
}

// claim is one claim of a job; its methods append events on its behalf.
type claim struct {
	*book
	event.Event // the fields that all of its events share
}

func (b *book) enqueue(id, queue string) event.Event {
	return b.add(event.Event{Job: event.JobID(id), Actor: "cli:ann@host", To: event.Queued,
		Body: &event.Enqueued{Queue: queue, MaxAttempts: 5}})
}

func (b *book) claim(job event.Event, w event.Worker, attempt int) claim {
	c := claim{b, event.Event{Job: job.Job, N: job.N, Actor: "worker:" + w.Name, Worker: w,
		Token: fmt.Sprintf("token-%s-%d", job.Job, attempt), Attempt: attempt}}
	c.log(&event.Claimed{LeaseUntil: ledgertest.Epoch.Add(time.Hour)}, event.Queued, event.ClaimedState)
	return c
}

func (c claim) log(body event.Body, from, to event.State) {
	e := c.Event
	e.Body, e.From, e.To = body, from, to
	c.add(e)
}

// twoQueues is a history that differs in every field that a filter can select by.
func twoQueues(t *testing.T) *book {
	b := newBook(t)
	first := event.Worker{Name: "w", Boot: "boot-1", Host: "host", PID: 1}
	again := event.Worker{Name: "w", Boot: "boot-2", Host: "host", PID: 2, Version: "v2"}
	other := event.Worker{Name: "other", Boot: "boot-3", Host: "host", PID: 3}
	b.add(event.Event{Actor: "worker:w", Worker: first, Body: &event.WorkerStarted{Queues: []string{"mail"}}})
	j1 := b.enqueue("A", "mail")
	j2 := b.enqueue("B", "video")
	j3 := b.enqueue("C", "mail")
	c1 := b.claim(j1, first, 1)
	c2 := b.claim(j2, other, 1)
	c1.log(&event.Heartbeat{LeaseUntil: ledgertest.Epoch.Add(time.Hour), Note: "half"}, event.ClaimedState,
		event.Running)
	c2.log(&event.Heartbeat{LeaseUntil: ledgertest.Epoch.Add(time.Hour)}, event.ClaimedState, event.Running)
	c1.log(&event.Failed{ErrorCode: "x", RetryAt: ledgertest.Epoch}, event.Running, event.Queued)
	b.add(event.Event{Actor: "cli:bob@host", Body: &event.QueuePaused{Queue: "video"}})
	c3 := b.claim(j1, again, 2)
	c3.log(&event.Heartbeat{LeaseUntil: ledgertest.Epoch.Add(time.Hour)}, event.ClaimedState, event.Running)
	b.add(event.Event{Job: "A", N: j1.N, Actor: "worker:w", Worker: first, Token: c1.Token, Attempt: 1,
		Body: &event.Refused{Command: "succeed", Why: "lease lost"}})
	b.add(event.Event{Job: "A", N: j1.N, Actor: "cli:eve@host", Token: "guessed",
		Body: &event.Refused{Command: "fail", Why: "no such claim"}})
	c3.log(&event.Heartbeat{LeaseUntil: ledgertest.Epoch.Add(time.Hour)}, event.Running, event.Running)
	c3.log(&event.Reclaimed{Reason: event.LeaseExpired}, event.Running, event.Queued)
	c2.log(&event.Succeeded{ResultBytes: 3}, event.Running, event.SucceededState)
	b.add(event.Event{Job: "B", N: j2.N, Actor: "cli:ann@host", From: event.SucceededState, To: event.Queued,
		Body: &event.Retried{}})
	c4 := b.claim(j2, other, 2)
	c4.log(&event.Released{Reason: "stop"}, event.ClaimedState, event.Queued)
	b.add(event.Event{Job: "C", N: j3.N, Actor: "cli:ann@host", From: event.Queued, To: event.CancelledState,
		Body: &event.Cancelled{}})
	b.add(event.Event{Job: "C", N: j3.N, Actor: "cli:ann@host", Body: &event.Erased{Bodies: 1}})
	c5 := b.claim(j1, again, 3)
	c5.log(&event.Succeeded{}, event.ClaimedState, event.SucceededState)
	b.add(event.Event{Actor: "cli:bob@host", Body: &event.QueueResumed{Queue: "video"}})
	b.add(event.Event{Actor: "worker:w", Worker: first, Body: &event.WorkerStopped{}})
	return b
}

func TestEventsFilter(t *testing.T) {
	b := twoQueues(t)
	at := func(i int) time.Time { return ledgertest.Epoch.Add(time.Duration(i) * time.Second) }
	queueOf := map[int64]string{}
	for _, e := range b.all {
		if enqueued, ok := e.Body.(*event.Enqueued); ok {
			queueOf[e.N] = enqueued.Queue
		}
	}
	ofQueue := func(e event.Event, queue string) bool {
		switch body := e.Body.(type) {
		case *event.QueuePaused:
			return body.Queue == queue
		case *event.QueueResumed:
			return body.Queue == queue
		}
		return e.N != 0 && queueOf[e.N] == queue
	}
	for name, c := range map[string]struct {
		filter ledger.Filter
		want   func(e event.Event) bool
	}{
		"everything":  {ledger.Filter{}, func(event.Event) bool { return true }},
		"a job":       {ledger.Filter{Job: 2}, func(e event.Event) bool { return e.Job == "A" }},
		"another job": {ledger.Filter{Job: 3}, func(e event.Event) bool { return e.Job == "B" }},
		"no such job": {ledger.Filter{Job: 1}, func(event.Event) bool { return false }},
		"one kind": {ledger.Filter{Kinds: []event.Kind{event.KindHeartbeat}},
			func(e event.Event) bool { return e.Kind() == event.KindHeartbeat }},
		"claims": {ledger.Filter{Kinds: []event.Kind{event.KindClaimed}},
			func(e event.Event) bool { return e.Kind() == event.KindClaimed }},
		"two kinds": {ledger.Filter{Kinds: []event.Kind{event.KindErased, event.KindReclaimed}},
			func(e event.Event) bool { return e.Kind() == event.KindErased || e.Kind() == event.KindReclaimed }},
		"ends of claims": {ledger.Filter{Ending: true},
			func(e event.Event) bool { return e.Kind().EndsClaim() }},
		"a worker's name": {ledger.Filter{Worker: "w"},
			func(e event.Event) bool { return e.Worker.Name == "w" }},
		"a worker's process": {ledger.Filter{Worker: "boot-2"},
			func(e event.Event) bool { return e.Worker.Boot == "boot-2" }},
		"a worker's claims": {ledger.Filter{Worker: "w", Kinds: []event.Kind{event.KindClaimed}},
			func(e event.Event) bool { return e.Worker.Name == "w" && e.Kind() == event.KindClaimed }},
		"no such worker": {ledger.Filter{Worker: "W"}, func(event.Event) bool { return false }},
		"a queue":        {ledger.Filter{Queue: "video"}, func(e event.Event) bool { return ofQueue(e, "video") }},
		"another queue":  {ledger.Filter{Queue: "mail"}, func(e event.Event) bool { return ofQueue(e, "mail") }},
		"no such queue":  {ledger.Filter{Queue: "mai"}, func(event.Event) bool { return false }},
		"an actor": {ledger.Filter{Actor: "cli:ann@host"},
			func(e event.Event) bool { return e.Actor == "cli:ann@host" }},
		"no such actor": {ledger.Filter{Actor: "cli:"}, func(event.Event) bool { return false }},
		"after":         {ledger.Filter{After: 10}, func(e event.Event) bool { return e.Pos > 10 }},
		"until":         {ledger.Filter{Until: 10}, func(e event.Event) bool { return e.Pos <= 10 }},
		"after and until": {ledger.Filter{After: 10, Until: 12}, func(e event.Event) bool {
			return e.Pos == 11 ||
				e.Pos == 12
		}},
		"from": {ledger.Filter{From: at(8)}, func(e event.Event) bool { return e.Pos >= 9 }},
		"from between": {ledger.Filter{From: at(8).Add(time.Microsecond)},
			func(e event.Event) bool { return e.Pos >= 10 }},
		"to": {ledger.Filter{To: at(8)}, func(e event.Event) bool { return e.Pos <= 9 }},
		"to between": {ledger.Filter{To: at(8).Add(-time.Microsecond)},
			func(e event.Event) bool { return e.Pos <= 8 }},
		"all fields": {ledger.Filter{Job: 2, Worker: "w", Queue: "mail", Actor: "worker:w", After: 3,
			Until: 20, From: at(3), To: at(19), Kinds: []event.Kind{event.KindHeartbeat, event.KindClaimed}},
			func(e event.Event) bool {
				return e.N == 2 && e.Pos <= 20 && (e.Kind() == event.KindHeartbeat || e.Kind() == event.KindClaimed)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []event.Event
			for _, e := range b.all {
				if c.want(e) {
					want = append(want, e)
				}
			}
			check := func(f ledger.Filter, want []event.Event) {
				t.Helper()
				if got := events(t, b.store, f); !slices.EqualFunc(got, want,
					func(a, b event.Event) bool { return reflect.DeepEqual(a, b) }) {
					t.Errorf("%+v:\ngot  %s\nwant %s", f, shown(got), shown(want))
				}
			}
			check(c.filter, want)
			for _, limit := range []int{1, 2, 100} {
				f, n := c.filter, min(limit, len(want))
				f.Limit = limit
				check(f, want[:n])
				f.Last = true
				check(f, want[len(want)-n:])
			}
			// the result must not depend on what was read before
			for after := int64(1); after < int64(len(b.all)); after++ {
				f := c.filter
				f.After = max(f.After, after)
				check(f, slices.DeleteFunc(slices.Clone(want), func(e event.Event) bool { return e.Pos <= after }))
			}
		})
	}
}

func shown(list []event.Event) (s string) {
	for _, e := range list {
		s += fmt.Sprintf("\n%d %s %s token %q worker %q", e.Pos, e.Job, e.Kind(), e.Token, e.Worker.Boot)
	}
	return s
}

// The view is a contract with users who only have a database shell: it shows the same fields of every event
// as the export.
func TestHistoryViewEqualsExport(t *testing.T) {
	b := twoQueues(t)
	for _, e := range ledgertest.StorableEvents(t) {
		e.Actor, e.Worker = "worker:w", event.Worker{Name: "w", Boot: "boot-2", Host: "host", PID: 2, Version: "v2"}
		if e.Kind().OfJob() {
			e.Job, e.N = "A", 2
		}
		if e.Kind() <= event.KindRefused || e.Kind() >= event.KindStopped {
			e.Token, e.Attempt = "token-A-3", 3
		}
		b.add(e)
	}
	for _, e := range events(t, b.store, ledger.Filter{}) {
		var view struct {
			text [8]*string
			seq  *int64
			n    *int
			data string
		}
		read(t, b.store, func(tx *ledger.Tx) error {
			rows,
				err := tx.Query(t.Context(),
				`SELECT job, kind, at, actor, worker, token, from_state, to_state, seq, attempt, data
FROM history WHERE pos = ?`, e.Pos)
			if err != nil {
				return err
			}
			defer rows.Close()
			if !rows.Next() {
				t.Fatalf("event %d is not in the view", e.Pos)
			}
			return rows.Scan(&view.text[0], &view.text[1], &view.text[2], &view.text[3], &view.text[4], &view.text[5],
				&view.text[6], &view.text[7], &view.seq, &view.n, &view.data)
		})
		exported := object(t, e)
		for i, name := range []string{"job", "kind", "at", "actor", "worker", "token", "from_state", "to_state"} {
			if name == "job" && ledgertest.OnPostgres(t) {
				continue // it is that of the job's row, and these events have none
			}
			want, _ := exported[name].(string)
			if (view.text[i] == nil) != (exported[name] == nil) || view.text[i] != nil && *view.text[i] != want {
				t.Errorf("event %d, %s: the view does not say %v", e.Pos, name, exported[name])
			}
		}
		if (view.seq == nil) != (e.Seq == 0) || view.seq != nil && *view.seq != e.Seq ||
			(view.n == nil) != (e.Attempt == 0) || view.n != nil && *view.n != e.Attempt {
			t.Errorf("event %d: the view says seq %v, attempt %v", e.Pos, view.seq, view.n)
		}
		var data map[string]any
		if err := json.Unmarshal([]byte(view.data), &data); err != nil {
			t.Fatalf("event %d: %v", e.Pos, err)
		}
		for name, want := range exported["data"].(map[string]any) {
			if got, ok := data[name]; ok && !reflect.DeepEqual(got, want) || !ok && want != nil &&
				!reflect.ValueOf(want).IsZero() && !slices.Contains([]string{"[]", "map[]"}, fmt.Sprint(want)) {
				t.Errorf("event %d (%s), data.%s: the view says %v, the export %v", e.Pos, e.Kind(), name, got, want)
			}
			delete(data, name)
		}
		if len(data) != 0 {
			t.Errorf("event %d (%s): the view has %v, which the export has not", e.Pos, e.Kind(), data)
		}
	}
}

func object(t *testing.T, e event.Event) (m map[string]any) {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPosAtIsLastEventNotAfter(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	check := func(tx *ledger.Tx, at time.Time, want int64) {
		t.Helper()
		if got, err := tx.PosAt(ctx, at); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", at, got, err, want)
		}
	}
	read(t, s, func(tx *ledger.Tx) error { check(tx, ledgertest.Epoch, 0); return nil })
	var now time.Time
	s.Now = func() time.Time { return now }
	steps := []int{0, 0, 1, 5, 5, 5, 6, 100}
	at := func(seconds int) time.Time { return ledgertest.Epoch.Add(time.Duration(seconds) * time.Second) }
	for i, seconds := range steps {
		now = at(seconds)
		write(t, s, func(tx *ledger.Tx) error {
			if err := note(ctx, tx, "a"); err != nil {
				return err
			}
			check(tx, now, int64(i+1)) // what this transaction wrote counts too
			return nil
		})
	}
	read(t, s, func(tx *ledger.Tx) error {
		for seconds := -2; seconds < 103; seconds++ {
			for _, off := range []time.Duration{0, time.Microsecond, -time.Microsecond} {
				then, want := at(seconds).Add(off), int64(0)
				for i, step := range steps {
					if !at(step).After(then) {
						want = int64(i + 1)
					}
				}
				check(tx, then, want)
			}
		}
		check(tx, time.Time{}, 0)
		check(tx, time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC), 0)
		check(tx, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), int64(len(steps)))
		return nil
	})
}

func TestJobNumberIsFoundInEvents(t *testing.T) {
	b := newBook(t)
	b.enqueue("A", "mail")
	b.enqueue("B", "mail")
	ctx := t.Context()
	check := func(tx *ledger.Tx) error {
		for id, want := range map[event.JobID]int64{"A": 1, "B": 2, "C": 0, "": 0} {
			if got, err := tx.Number(ctx, id); err != nil || got != want {
				t.Errorf("%q: got %d, %v, want %d", id, got, err, want)
			}
		}
		return nil
	}
	read(t, b.store, check)
	write(t, b.store, check)
	write(t, b.store, func(tx *ledger.Tx) error {
		n := tx.Next()
		e := event.Event{Pos: n, N: n, Seq: 1, Job: "D", At: tx.At(), Actor: "a",
			Body: &event.Enqueued{Queue: "mail"}}
		if err := tx.Append(ctx, e); err != nil {
			return err
		}
		if got, err := tx.Number(ctx, "D"); err != nil || got != n {
			t.Errorf("one of the same transaction: got %d, %v, want %d", got, err, n)
		}
		return nil
	})
}

func TestEventsReadingStopsAnywhere(t *testing.T) {
	b := twoQueues(t)
	ctx := t.Context()
	read(t, b.store, func(tx *ledger.Tx) error {
		for range 300 { // each open iteration has its own statement
			for _, err := range tx.Events(ctx, ledger.Filter{}) {
				if err != nil {
					return err
				}
				break
			}
		}
		return nil
	})
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	read(t, b.store, func(tx *ledger.Tx) error {
		for _, err := range tx.Events(cancelled, ledger.Filter{}) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("with a context that has ended: got %v", err)
			}
		}
		return nil
	})
}

func TestEventsDamageIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		row  string
		want error
	}{
		"a kind of a newer program": {`2, NULL, 99, 1, NULL`, ledger.ErrUnknownKind},
		"an unknown field":          {`2, NULL, 13, 1, '{"queue":"mail","x":1}'`, ledger.ErrDamaged},
		"data is not an object":     {`2, NULL, 13, 1, '3'`, ledger.ErrDamaged},
		"data is not JSON":          {`2, NULL, 13, 1, 'mail'`, ledger.ErrDamaged},
		"an actor without a name":   {`2, NULL, 13, 77, NULL`, ledger.ErrDamaged},
		"a worker without a name":   {`2, 77, 15, 1, NULL`, ledger.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "data is not JSON" {
				ledgertest.OfSQLite(t)
			}
			s := ledgertest.Open(t)
			write(t, s, func(tx *ledger.Tx) error { return note(t.Context(), tx, "a") })
			write(t, s, func(tx *ledger.Tx) error {
				_, err := tx.Exec(`INSERT INTO events (pos, worker, kind, actor, data, at) VALUES (` + c.row +
					`, 4102444800000000)`)
				return err
			})
			var got []error
			read(t, s, func(tx *ledger.Tx) error {
				for _, err := range tx.Events(t.Context(), ledger.Filter{}) {
					got = append(got, err)
				}
				return nil
			})
			if len(got) != 2 || got[0] != nil || !errors.Is(got[1], c.want) || got[1].Error()[:8] != "event 2:" {
				t.Errorf("got %v, want the first event and then %v of event 2", got, c.want)
			}
		})
	}
}

func TestEventsOfManyJobsAreComplete(t *testing.T) {
	b := twoQueues(t)
	for _, others := range []int{ledger.MaxClaims - 2, ledger.MaxClaims - 1, ledger.MaxClaims} {
		read(t, b.store, func(tx *ledger.Tx) error {
			got, err := tx.EventsKnowing(t.Context(), others)
			if !reflect.DeepEqual(got, b.all) {
				t.Errorf("with %d other jobs: got %s", others, shown(got))
			}
			return err
		})
	}
}
