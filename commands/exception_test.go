package commands_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	limits "jobledger/projection/limit"
)

func (q *queue) setException(group string, running int) {
	q.T.Helper()
	_, err := q.LimitGroup(q.T.Context(), "cli:test", "mail", group, limits.GroupSpec{Running: running}, "")
	if err != nil {
		q.T.Fatalf("limit the group %s: %v", group, err)
	}
}

// takes claims all that may start, and wants so many jobs of each group.
func (q *queue) takes(when string, want map[string]int) {
	q.T.Helper()
	got := make(map[string]int)
	for _, j := range q.claim("w", limit(50)) {
		got[j.Group]++
		if !j.Limited {
			q.T.Errorf("%s: the claim of job %s is not marked as limited", when, j.ID)
		}
	}
	if !reflect.DeepEqual(got, want) {
		q.T.Errorf("%s: claimed %v, want %v", when, got, want)
	}
}

func TestLimitGroupBoundsOneGroup(t *testing.T) {
	q := newQueue(t)
	for range 9 {
		for _, name := range []string{"a", "b", "c"} {
			q.enqueue(commands.Enqueue{Group: name})
		}
	}
	q.setException("a", 1)
	q.setLimit(limits.Spec{PerGroup: 2})
	q.setException("b", 4)
	q.takes("with two exceptions", map[string]int{"a": 1, "b": 4, "c": 2})
	q.setException("a", 3)
	q.takes("after one was raised", map[string]int{"a": 2})
	q.setException("b", 1)
	q.setLimit(limits.Spec{PerGroup: 3, Running: 11})
	q.takes("after the limit of each group was raised", map[string]int{"c": 1})
	other := &queue{commandstest.On(t, ledgertest.OpenAt(t, q.Store.DSN()))}
	other.Now = q.Now
	other.setException("a", 0)
	other.setException("c", 5)
	q.takes("after another process changed both, with one slot left", map[string]int{"c": 1})
	q.setLimit(limits.Spec{PerGroup: 3})
	q.takes("without the limit of all", map[string]int{"c": 1})
	if _, err := q.Limit(t.Context(), "cli:test", "mail", limits.Spec{}, ""); err != nil {
		t.Fatal(err)
	}
	tail := q.Tail()
	q.setLimit(limits.Spec{})
	q.setException("c", 0)
	if q.Tail() != tail {
		t.Error("limits that were away were recorded as taken away again")
	}
	if more := q.claim("w", limit(50)); len(more) != 27-12 {
		t.Errorf("claimed %d jobs without any limit, want the other 15", len(more))
	}
	q.Verify()
	for _, name := range []string{"", "a\tb"} {
		_, err := q.LimitGroup(t.Context(), "cli:test", "mail", name, limits.GroupSpec{Running: 1}, "")
		if err == nil {
			t.Errorf("the group %q was limited", name)
		}
	}
}

// TestLimitGroupWithoutLimitOfQueue checks that an exception alone bounds its group, that the end of a claim
// wakes who waits for the slot, and that taking the limits of the queue away takes the exception away.
func TestLimitGroupWithoutLimitOfQueue(t *testing.T) {
	q := newQueue(t)
	q.setException("a", 1)
	tail := q.Tail()
	q.setException("a", 1)
	if q.Tail() != tail {
		t.Error("the same exception was recorded twice")
	}
	q.enqueue(commands.Enqueue{Group: "a"})
	q.enqueue(commands.Enqueue{Group: "a"})
	q.enqueue(commands.Enqueue{Group: "a"})
	j := q.claimOne("w")
	r := commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "v", Boot: "v"}}
	if ready, next, err := q.Ready(t.Context(), r); err != nil || ready || !next.IsZero() {
		t.Fatalf("ready %t at %s, %v; want nothing", ready, next, err)
	}
	woken, stop := q.Store.Watch()
	defer stop()
	other := &commands.Service{Store: ledgertest.OpenAt(t, q.Store.DSN())}
	if _, err := other.Apply(t.Context(), "worker:w", j.ID, commands.Succeed{Token: j.Token}); err != nil {
		t.Fatal(err)
	}
	<-woken
	q.claimOne("w")
	if changed, err := q.Limit(t.Context(), "cli:test", "mail", limits.Spec{}, ""); err != nil || !changed {
		t.Fatalf("changed %t, %v; want the exception to be taken away", changed, err)
	}
	q.claimOne("w")
	q.Verify()
}

// TestLimitGroupIsCopiedAndRebuilt wants an import and a rebuild to make the rows of exceptions that the
// commands made.
func TestLimitGroupIsCopiedAndRebuilt(t *testing.T) {
	q := newQueue(t)
	for i := range 4 {
		q.enqueue(commands.Enqueue{Group: fmt.Sprint("g", i%2)})
	}
	q.setException("g0", 1)
	q.setException("g7", 7)
	q.setLimit(limits.Spec{PerGroup: 2, Rate: limits.Rate{N: 60, Per: time.Minute, Burst: 9}})
	q.setException("g7", 0)
	q.takes("before the copy", map[string]int{"g0": 1, "g1": 2})
	q.setLimit(limits.Spec{PerGroup: 2, Ageing: time.Minute, PerGroupRate: limits.Rate{N: 2, Per: time.Minute},
		Rate: limits.Rate{N: 60, Per: time.Minute, Burst: 9}})
	q.enqueue(commands.Enqueue{Group: "g2"})
	q.enqueue(commands.Enqueue{Group: "g2"})
	q.takes("with a rate of each group", map[string]int{"g2": 1})
	want, heads := q.limits(), q.heads()
	if len(want) != 1 || len(want[0].Exceptions) != 2 {
		t.Fatalf("the limits are %+v", want)
	}
	for _, staging := range []bool{false, true} {
		other := &queue{commandstest.On(t, ledgertest.Open(t))}
		other.Staging, other.Now = staging, q.Now
		_, err := load.Import(t.Context(), other.Service, "cli:test", "q",
			q.Store.Lines(t.Context(), ledger.Filter{}, true), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := other.limits(); !reflect.DeepEqual(got, want) {
			t.Errorf("staging %t: imported %+v, want %+v", staging, got, want)
		}
		if got := other.heads(); !reflect.DeepEqual(got, heads) {
			t.Errorf("staging %t: imported %+v, want %+v", staging, got, heads)
		}
		other.Verify()
		if more := other.claim("w", limit(9)); len(more) != 0 {
			t.Errorf("staging %t: claimed %d jobs of full groups", staging, len(more))
		}
	}
	for _, damage := range []string{
		`UPDATE limits SET running = 9, reason = 'x' WHERE grp = 'g0'`,
		`DELETE FROM limits`,
		`UPDATE limits SET grp = 'g9' WHERE grp = 'g0'`,
		`UPDATE limits SET grp = 'g9' WHERE grp = ''`,
		`UPDATE group_rates SET used_until = 7`,
		`UPDATE limits SET ageing = 3 WHERE grp = ''`,
		`DELETE FROM group_rates`,
		`UPDATE group_rates SET grp = 'g9'`,
	} {
		q.exec(damage)
		if _, err := q.Rebuild(t.Context(), "cli:test"); err != nil {
			t.Fatal(err)
		}
		if got := q.limits(); !reflect.DeepEqual(got, want) {
			t.Errorf("after %s: rebuilt to %+v, want %+v", damage, got, want)
		}
		if got := q.heads(); !reflect.DeepEqual(got, heads) {
			t.Errorf("after %s: rebuilt to %+v, want %+v", damage, got, heads)
		}
		q.Verify()
	}
}

func (q *queue) limits() (found []limits.Limit) {
	q.T.Helper()
	err := q.Store.Read(q.T.Context(), func(tx *ledger.Tx) (err error) {
		found, err = limits.All(q.T.Context(), tx)
		return err
	})
	if err != nil {
		q.T.Fatal(err)
	}
	return found
}
