package commands_test

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	limits "jobledger/projection/limit"
)

// TestGroupRateSpacesStarts checks the rate of each group: it has its own burst, counts the starts of all
// lanes, delays no other group, yields to an exception, and sets when an idle worker looks again.
func TestGroupRateSpacesStarts(t *testing.T) {
	q := newQueue(t)
	for i := range 8 {
		for _, name := range []string{"a", "b", "c"} {
			q.enqueue(commands.Enqueue{Group: name, Priority: i % 2})
		}
	}
	spec := limits.Spec{PerGroupRate: limits.Rate{N: 6, Per: time.Minute, Burst: 2}}
	q.setLimit(spec)
	_, err := q.LimitGroup(t.Context(), "cli:test", "mail", "c",
		limits.GroupSpec{Rate: limits.Rate{N: 1, Per: time.Minute}}, "")
	if err != nil {
		t.Fatal(err)
	}
	q.takes("at first", map[string]int{"a": 2, "b": 2, "c": 1})
	q.takes("at once again", map[string]int{})
	r := commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "w", Boot: "w"}}
	ready, next, err := q.Ready(t.Context(), r)
	if err != nil || ready || !next.Equal(q.Now.Add(10*time.Second)) {
		t.Fatalf("ready %t at %s, %v; want the next start in ten seconds", ready, next, err)
	}
	q.Now = next.Add(-time.Microsecond)
	q.takes("a moment too early", map[string]int{})
	q.Now = next
	q.takes("after ten seconds", map[string]int{"a": 1, "b": 1})

	other := &queue{commandstest.On(t, ledgertest.OpenAt(t, q.Store.DSN()))}
	other.Now = q.Now
	spec.Running = 100 // another limit changes: the rates go on
	other.setLimit(spec)
	other.takes("after another limit changed", map[string]int{})
	q.Now = q.Now.Add(10 * time.Second)
	q.takes("ten seconds later", map[string]int{"a": 1, "b": 1})
	spec.PerGroupRate.N = 3 // another rate begins at once; that of c is its own
	q.setLimit(spec)
	q.takes("with another rate", map[string]int{"a": 2, "b": 2})
	q.setException("c", 0)
	q.takes("without the exception", map[string]int{"c": 2})
	q.Verify()
	q.setLimit(limits.Spec{})
	if more := q.claim("w", limit(50)); len(more) != 24-6-6-3 {
		t.Errorf("claimed %d jobs without a limit, want the other 9", len(more))
	}
	q.Verify()
}

// TestGroupRateClockSetBack checks that a clock that was set back never makes a group exceed its rate, and
// that it starts its next job when the time of the events has come that far.
func TestGroupRateClockSetBack(t *testing.T) {
	q := newQueue(t)
	for range 3 {
		q.enqueue(commands.Enqueue{Group: "a"})
	}
	q.setLimit(limits.Spec{PerGroupRate: limits.Rate{N: 1, Per: time.Minute}})
	q.takes("at first", map[string]int{"a": 1})
	q.Now = q.Now.Add(-time.Hour)
	q.takes("an hour before", map[string]int{})
	q.Now = q.Now.Add(time.Hour + time.Minute)
	q.takes("a minute after the first", map[string]int{"a": 1})
	q.Verify()
}

// TestGroupRateCountsStartsOfOthers lets two processes take the jobs of a burst, until it is used
// up: none of them may count from what it knew before the other's claim.
func TestGroupRateCountsStartsOfOthers(t *testing.T) {
	q := newQueue(t)
	other := &queue{commandstest.On(t, ledgertest.OpenAt(t, q.Store.DSN()))}
	other.Now = q.Now
	for range 9 {
		q.enqueue(commands.Enqueue{Group: "a"})
	}
	q.setLimit(limits.Spec{PerGroupRate: limits.Rate{N: 1, Per: time.Minute, Burst: 4}})
	q.claimOne("w")
	other.claimOne("v")
	other.claimOne("v")
	q.takes("after two starts of another process", map[string]int{"a": 1})
	other.takes("with the burst used up", map[string]int{})
	other.Now = other.Now.Add(time.Minute)
	other.takes("a minute later", map[string]int{"a": 1})
	q.Verify()
}
