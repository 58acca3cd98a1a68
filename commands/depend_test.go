package commands_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/deps"

	"pgregory.net/rapid"
)

func after(jobs ...projection.Job) (list []commands.Dependency) {
	for _, j := range jobs {
		list = append(list, commands.Dependency{Job: j.ID})
	}
	return list
}

func on(ending event.Ending, jobs ...projection.Job) []commands.Dependency {
	list := after(jobs...)
	for i := range list {
		list[i].On = ending
	}
	return list
}

// endNext claims j, which must be the next job, and ends it.
func (q *queue) endNext(j projection.Job, success bool) {
	q.T.Helper()
	c := q.claimOne("w1")
	if c.ID != j.ID {
		q.T.Fatalf("claimed %s, want %s", c.ID, j.ID)
	}
	var command commands.Command = commands.Succeed{Token: c.Token}
	if !success {
		command = commands.Fail{Token: c.Token, NoRetry: true}
	}
	q.command(j, command)
}

func (q *queue) command(j projection.Job, c commands.Command) projection.Job {
	q.T.Helper()
	after, err := q.Apply(q.T.Context(), "cli:test", j.ID, c)
	if err != nil {
		q.T.Fatalf("%T: %v", c, err)
	}
	return after
}

// wantStates compares the states of jobs with words, in order.
func (q *queue) wantStates(words string, jobs ...projection.Job) {
	q.T.Helper()
	var got []string
	for _, j := range jobs {
		got = append(got, q.fresh(j.ID).State.String())
	}
	if s := strings.Join(got, " "); s != words {
		q.T.Errorf("states are %s, want %s", s, words)
	}
}

// Five steps, of which the one in the middle fails: those behind it are cancelled, and a retry of it heals
// them.
func TestDependencyChainFailsAndHeals(t *testing.T) {
	q := newQueue(t)
	a := q.enqueue(commands.Enqueue{})
	b := q.enqueue(commands.Enqueue{After: after(a)})
	c := q.enqueue(commands.Enqueue{After: after(a, b)})
	d := q.enqueue(commands.Enqueue{After: after(c)})
	e := q.enqueue(commands.Enqueue{After: after(d, b)})
	q.wantStates("queued blocked blocked blocked blocked", a, b, c, d, e)
	q.endNext(a, true)
	q.wantStates("succeeded queued blocked blocked blocked", a, b, c, d, e)
	q.endNext(b, true)
	q.endNext(c, false)
	q.wantStates("succeeded succeeded failed cancelled cancelled", a, b, c, d, e)
	wantClean(t, q.Store)
	late := q.enqueue(commands.Enqueue{After: after(c)})
	q.wantStates("cancelled", late)
	q.command(c, commands.Retry{Reason: "fixed"})
	q.wantStates("queued blocked blocked blocked", c, d, e, late)
	wantClean(t, q.Store)
	for _, j := range []projection.Job{c, d} {
		q.endNext(j, true)
	}
	for range 2 {
		one := q.claimOne("w1")
		q.command(one, commands.Succeed{Token: one.Token})
	}
	q.wantStates("succeeded succeeded succeeded succeeded succeeded succeeded", a, b, c, d, e, late)
	wantClean(t, q.Store)
	if got := strings.Join(q.kinds(e.ID), " "); got !=
		"enqueued cancelled retried unblocked claimed succeeded" {
		t.Errorf("the last step has %s", got)
	}
}

func TestDependencyEndings(t *testing.T) {
	for _, test := range []struct {
		end  string
		want string // of those that wait for success, failure and any end
	}{
		{"succeed", "queued cancelled queued"},
		{"fail", "cancelled queued queued"},
		{"cancel", "cancelled cancelled queued"},
	} {
		q := newQueue(t)
		a := q.enqueue(commands.Enqueue{})
		var waiting []projection.Job
		for ending := event.OnSucceeded; ending <= event.OnFinished; ending++ {
			waiting = append(waiting, q.enqueue(commands.Enqueue{After: on(ending, a)}))
		}
		switch test.end {
		case "cancel":
			q.command(a, commands.Cancel{})
		default:
			q.endNext(a, test.end == "succeed")
		}
		q.wantStates(test.want, waiting...)
		for ending := event.OnSucceeded; ending <= event.OnFinished; ending++ { // the same afterwards
			late := q.enqueue(commands.Enqueue{After: on(ending, a)})
			q.wantStates(strings.Fields(test.want)[ending-1], late)
		}
		wantClean(t, q.Store)
	}
}

// A batch is a job that is held while its members are enqueued.
func TestDependencyBatch(t *testing.T) {
	q := newQueue(t)
	report := q.enqueue(commands.Enqueue{Hold: true})
	m1 := q.enqueue(commands.Enqueue{Before: after(report)})
	m2 := q.enqueue(commands.Enqueue{Before: on(event.OnFinished, report)})
	q.endNext(m1, true)
	q.wantStates("blocked", report)
	q.command(report, commands.Unblock{Reason: "all are there"})
	q.wantStates("blocked", report)
	q.endNext(m2, false)
	q.wantStates("queued", report)
	wantClean(t, q.Store)

	empty := q.enqueue(commands.Enqueue{Hold: true})
	q.command(empty, commands.Unblock{})
	q.wantStates("queued", empty)

	failing := q.enqueue(commands.Enqueue{Hold: true})
	m := q.enqueue(commands.Enqueue{Before: after(failing), Priority: 1})
	q.endNext(m, false)
	other := q.enqueue(commands.Enqueue{Before: after(failing), Priority: 1}) // members go on to be enqueued
	q.wantStates("cancelled queued", failing, other)
	q.command(m, commands.Retry{})
	q.wantStates("blocked", failing)
	q.endNext(m, true)
	q.endNext(other, true)
	q.wantStates("blocked", failing) // the hold is still there
	q.command(failing, commands.Unblock{})
	q.wantStates("queued", failing)
	wantClean(t, q.Store)
}

func TestDependencyRefused(t *testing.T) {
	q := newQueue(t)
	a := q.enqueue(commands.Enqueue{Hold: true})
	b := q.enqueue(commands.Enqueue{After: after(a)})
	ready := q.enqueue(commands.Enqueue{})
	unknown := commands.Dependency{Job: event.JobID(id(77))}
	for _, test := range []struct {
		e    commands.Enqueue
		want error
	}{
		{commands.Enqueue{After: []commands.Dependency{unknown}}, commands.ErrNoJob},
		{commands.Enqueue{Before: []commands.Dependency{unknown}}, commands.ErrNoJob},
		{commands.Enqueue{Before: after(ready)}, commands.ErrConflict},
		{commands.Enqueue{After: after(b), Before: after(a)}, commands.ErrConflict}, // a cycle
		{commands.Enqueue{After: after(a, a)}, commands.ErrInvalid},
		{commands.Enqueue{After: []commands.Dependency{{Job: "x"}}}, commands.ErrInvalid},
		{commands.Enqueue{After: []commands.Dependency{{Job: a.ID, On: 4}}}, commands.ErrInvalid},
		{commands.Enqueue{After: make([]commands.Dependency, commands.MaxAfter+1)}, commands.ErrInvalid},
		{commands.Enqueue{Before: make([]commands.Dependency, commands.MaxBefore+1)}, commands.ErrInvalid},
	} {
		test.e.Queue = "mail"
		if _, err := q.Enqueue(t.Context(), "cli:test", test.e); !errors.Is(err, test.want) {
			t.Errorf("%+v: got %v, want %v", test.e, err, test.want)
		}
	}
	for _, j := range []projection.Job{b, ready} {
		if _, err := q.Apply(t.Context(), "cli:test", j.ID, commands.Unblock{}); !errors.Is(err,
			commands.ErrConflict) {
			t.Errorf("unblock of %s: got %v", j.State, err)
		}
	}
	wantClean(t, q.Store)
}

// A job that an operator ends or runs waits for nothing any more, and a retry can leave the others alone.
func TestDependencyOperatorActs(t *testing.T) {
	q := newQueue(t)
	a := q.enqueue(commands.Enqueue{})
	b := q.enqueue(commands.Enqueue{After: after(a)})
	c := q.enqueue(commands.Enqueue{After: after(b)})
	d := q.enqueue(commands.Enqueue{After: after(a)})
	q.command(d, commands.Cancel{Reason: "not needed"})
	q.endNext(a, false)
	q.wantStates("cancelled cancelled cancelled", b, c, d)
	q.command(a, commands.Retry{Alone: true})
	q.wantStates("cancelled cancelled cancelled", b, c, d)
	q.endNext(a, true)
	q.wantStates("cancelled cancelled cancelled", b, c, d)
	q.command(b, commands.Retry{Reason: "by hand"})
	q.wantStates("queued blocked cancelled", b, c, d)
	wantClean(t, q.Store)
	q.command(b, commands.Cancel{})
	q.command(c, commands.Erase{})
	q.command(b, commands.Retry{})
	q.wantStates("queued cancelled", b, c) // what was erased is not run again
	wantClean(t, q.Store)
}

// More jobs than are resolved at once are resolved by sweepers, in steps, whatever happens meanwhile.
func TestDependencyResolvedInSteps(t *testing.T) {
	defer commands.SetResolvedAtOnce(3)()
	q := newQueue(t)
	a := q.enqueue(commands.Enqueue{Priority: 1})
	var waiting []projection.Job
	for range 10 {
		waiting = append(waiting, q.enqueue(commands.Enqueue{After: after(a)}))
	}
	last := q.enqueue(commands.Enqueue{After: after(waiting...)})
	count := func(s event.State) (n int) {
		for _, j := range waiting {
			if q.fresh(j.ID).State == s {
				n++
			}
		}
		return n
	}
	q.endNext(a, false)
	if n := count(event.CancelledState); n < 1 || n > 3 {
		t.Errorf("%d jobs are cancelled at once", n)
	}
	wantClean(t, q.Store)
	q.command(a, commands.Retry{})
	wantClean(t, q.Store)
	q.endNext(a, true) // while the retry is still being resolved
	wantClean(t, q.Store)
	q.sweep()
	if n := count(event.Queued); n != 10 {
		t.Errorf("%d jobs are queued after a sweep", n)
	}
	q.wantStates("blocked", last)
	wantClean(t, q.Store)
	for range waiting {
		j := q.claimOne("w1")
		q.command(j, commands.Succeed{Token: j.Token})
	}
	q.sweep()
	q.wantStates("queued", last)
	wantClean(t, q.Store)
}

// The hold of a job is lifted before a sweeper has resolved that what it waits for has succeeded.
func TestUnblockBeforeParentIsResolved(t *testing.T) {
	defer commands.SetResolvedAtOnce(1)()
	q := newQueue(t)
	a := q.enqueue(commands.Enqueue{})
	q.enqueue(commands.Enqueue{After: after(a)})
	held := q.enqueue(commands.Enqueue{After: after(a), Hold: true})
	failed := q.enqueue(commands.Enqueue{
		After: []commands.Dependency{{Job: a.ID, On: event.OnFailed}}, Hold: true})
	q.endNext(a, true)
	q.command(held, commands.Unblock{})
	q.command(failed, commands.Unblock{})
	q.wantStates("queued blocked", held, failed)
	wantClean(t, q.Store)
	q.sweep()
	q.wantStates("queued cancelled", held, failed)
	wantClean(t, q.Store)
}

// Random jobs with random dependencies, ends, retries, cancellations and erasures: the events allow each
// step, the table is what they add up to, an import and a rebuild make the same, and in the end nothing
// hangs.
func TestDependenciesOfAnyGraph(t *testing.T) {
	t.Parallel()
	defer commands.SetResolvedAtOnce(2)()
	most := ledgertest.Size(10, 10, 120)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > most {
			return
		}
		q := &queue{commandstest.New(t)}
		var jobs []projection.Job
		pick := func(label string, most int) (list []commands.Dependency) {
			seen := make(map[event.JobID]bool)
			for range rapid.IntRange(0, most).Draw(rt, label) {
				j := jobs[rapid.IntRange(0, len(jobs)-1).Draw(rt, "job")]
				if !seen[j.ID] {
					list = append(list, commands.Dependency{Job: j.ID, On: event.Ending(rapid.IntRange(0, 3).Draw(rt,
						"ending"))})
				}
				seen[j.ID] = true
			}
			return list
		}
		steps := rapid.IntRange(5, 40).Draw(rt, "steps")
		for range steps {
			step := rapid.IntRange(0, 9).Draw(rt, "step")
			if len(jobs) == 0 {
				step = 0
			}
			var c commands.Command
			switch step {
			case 0, 1, 2, 3:
				e := commands.Enqueue{Queue: "mail", Hold: rapid.IntRange(0, 5).Draw(rt, "hold") == 0}
				if len(jobs) > 0 {
					e.After, e.Before = pick("after", 3), pick("before", 1)
				}
				added, err := q.Enqueue(t.Context(), "cli:test", e)
				if err == nil {
					jobs = append(jobs, added[0].Job)
				} else if !errors.Is(err, commands.ErrConflict) {
					rt.Fatal(err)
				}
				continue
			case 4, 5:
				for _, j := range q.claim("w1", limit(rapid.IntRange(1, 3).Draw(rt, "claims"))) {
					q.command(j, commands.Fail{Token: j.Token, NoRetry: true})
				}
				continue
			case 6:
				for _, j := range q.claim("w1", limit(rapid.IntRange(1, 3).Draw(rt, "claims"))) {
					q.command(j, commands.Succeed{Token: j.Token})
				}
				continue
			case 7:
				c = commands.Retry{Alone: rapid.Bool().Draw(rt, "alone")}
			case 8:
				c = commands.Cancel{}
			default:
				c = commands.Unblock{}
				if rapid.Bool().Draw(rt, "erase") {
					c = commands.Erase{}
				}
			}
			j := jobs[rapid.IntRange(0, len(jobs)-1).Draw(rt, "job")]
			if _, err := q.Apply(t.Context(), "cli:test", j.ID, c); err != nil &&
				!errors.Is(err, commands.ErrConflict) {
				rt.Fatal(err)
			}
			verified(rt, t, q.Store)
		}
		verified(rt, t, q.Store)
		importedAgain(rt, t, q)
		rebuiltSame(rt, t, q)
		q.sweep()
		for range 3 * len(jobs) {
			claimed := q.claim("w1", limit(10))
			for _, j := range claimed {
				q.command(j, commands.Succeed{Token: j.Token})
			}
			for _, j := range jobs {
				if q.fresh(j.ID).State == event.Blocked {
					_, _ = q.Apply(t.Context(), "cli:test", j.ID, commands.Unblock{})
				}
			}
			q.sweep()
		}
		for _, j := range jobs {
			if s := q.fresh(j.ID).State; !s.Final() {
				rt.Fatalf("job %s hangs: it is %s", j.ID, s)
			}
		}
		verified(rt, t, q.Store)
	})
}

func verified(rt *rapid.T, t *testing.T, store *ledger.Store) {
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		for _, f := range v.Findings {
			rt.Errorf("verify: %+v", f)
		}
		return err
	})
	if err != nil || rt.Failed() {
		rt.Logf("the history:\n%s", exported(t, store))
		rt.Fatal(err)
	}
}

// waits lists the table deps.
func waits(rt *rapid.T, t *testing.T, store *ledger.Store) string {
	var list []string
	err := store.Read(t.Context(), func(tx *ledger.Tx) error {
		edges, err := deps.All(t.Context(), tx)
		for _, e := range edges {
			list = append(list, fmt.Sprint(e))
		}
		return err
	})
	if err != nil {
		rt.Fatal(err)
	}
	return strings.Join(list, " ")
}

// importedAgain imports the history into another ledger, which a sweep resolves to the same end.
func importedAgain(rt *rapid.T, t *testing.T, q *queue) {
	again := &commands.Service{Store: openFast(t)}
	if _, err := load.Import(t.Context(), again, "cli:test", "x", parsed(exported(t, q.Store)),
		nil); err != nil {
		rt.Fatal(err)
	}
	verified(rt, t, again.Store)
	none := time.Duration(0)
	for _, s := range []*commands.Service{again, q.Service} {
		if _, err := (&commands.Sweeper{Service: s, Actor: "sweeper:x", Grace: &none}).Sweep(
			t.Context()); err != nil {
			rt.Fatal(err)
		}
		verified(rt, t, s.Store)
	}
	if got, want := waits(rt, t, again.Store), waits(rt, t, q.Store); got != want {
		rt.Fatalf("after an import the table has\n%s, want\n%s", got, want)
	}
}

// rebuiltSame removes the table, and a rebuild makes it again.
func rebuiltSame(rt *rapid.T, t *testing.T, q *queue) {
	before := waits(rt, t, q.Store)
	err := q.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		_, err := tx.Exec(`DELETE FROM deps WHERE child > 2`)
		return err
	})
	if err != nil {
		rt.Fatal(err)
	}
	if _, err := q.Rebuild(t.Context(), "cli:test"); err != nil {
		rt.Fatal(err)
	}
	if got := waits(rt, t, q.Store); got != before {
		rt.Fatalf("after a rebuild the table has\n%s, want\n%s", got, before)
	}
	verified(rt, t, q.Store)
}

// What the table says and the events do not is found, and so is an event that the events before do not
// permit.
func TestDependencyFaultsAreFound(t *testing.T) {
	const waiting = `(SELECT max(child) FROM deps)`
	for _, fault := range []string{
		`DELETE FROM deps WHERE child = ` + waiting,
		`UPDATE deps SET broken = 1`,
		`UPDATE deps SET ending = 3`,
		`UPDATE deps SET parent = 2`,
		`INSERT INTO deps (parent, child, ending, broken) VALUES (2, 1, 1, 0)`,
	} {
		q := newQueue(t)
		a := q.enqueue(commands.Enqueue{})
		q.enqueue(commands.Enqueue{})
		q.enqueue(commands.Enqueue{After: after(a)})
		damage(t, q.Service, fault)
		err := q.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			v, err := audit.Verify(t.Context(), tx, nil)
			if len(v.Findings) == 0 || v.Findings[0].Code != audit.FindDependency {
				t.Errorf("%s: found %+v", fault, v.Findings)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Rebuild(t.Context(), "cli:test"); err != nil {
			t.Fatal(err)
		}
	}

	q := newQueue(t)
	a := q.enqueue(commands.Enqueue{})
	q.enqueue(commands.Enqueue{After: after(a)})
	q.endNext(a, true)
	lines := strings.Split(strings.TrimSpace(string(exported(t, q.Store))), "\n")
	early := slices.Concat(lines[:2], lines[4:5])
	for i := range early {
		early[i] = strings.Replace(early[i], `"pos":5`, `"pos":3`, 1)
	}
	_, err := load.Import(t.Context(), &commands.Service{Store: openFast(t)}, "cli:test", "x",
		parsed([]byte(strings.Join(early, "\n")+"\n")), nil)
	if err == nil || !strings.Contains(err.Error(), audit.FindDependency) {
		t.Errorf("import of a job that does not wait for its parent: %v", err)
	}
}

// TestDependencyOfAnotherProcess lets a process learn that no job waits, and another one add one that does.
func TestDependencyOfAnotherProcess(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	q.succeed(q.claimOne("w1")) // nothing waits, and this store knows it
	a := q.enqueue(commands.Enqueue{})
	other := &commands.Service{Store: ledgertest.OpenAt(t, q.Store.DSN())}
	waiting, err := other.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail", After: after(a)})
	if err != nil {
		t.Fatal(err)
	}
	q.endNext(a, true)
	q.wantStates("queued", waiting[0].Job)
	wantClean(t, q.Store)
}
