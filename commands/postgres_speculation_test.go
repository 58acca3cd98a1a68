package commands_test

import (
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// A claim that took as many jobs as it wanted makes the next one request those that follow as its transaction
// begins. Whatever happens in between, in another process or in this one, that claim takes the right jobs.
func TestPostgresClaimAfterAFullClaim(t *testing.T) {
	t.Parallel()
	const limit = 2
	quick := []string{"another one takes them", "one that is more urgent", "the queue is paused"}
	later := time.Now().Add(time.Hour)
	for name, test := range map[string]struct {
		change func(t *testing.T, mine, other *commands.Service, ids []event.JobID)
		want   []int // of the jobs; -1: one that the change has added
	}{
		"nothing": {func(*testing.T, *commands.Service, *commands.Service, []event.JobID) {}, []int{2, 3}},
		"the next one is cancelled": {func(t *testing.T, _, other *commands.Service, ids []event.JobID) {
			apply(t, other, ids[2], commands.Cancel{})
		}, []int{3, 4}},
		"the next one is cancelled here": {func(t *testing.T, mine, _ *commands.Service, ids []event.JobID) {
			apply(t, mine, ids[2], commands.Cancel{})
		}, []int{3, 4}},
		"another one takes them": {func(t *testing.T, _, other *commands.Service, _ []event.JobID) {
			claimedIDs(t, other, limit)
		}, []int{4, 5}},
		"all are taken but one": {func(t *testing.T, _, other *commands.Service, _ []event.JobID) {
			claimedIDs(t, other, 3)
		}, []int{5}},
		"one that is more urgent": {func(t *testing.T, _, other *commands.Service, _ []event.JobID) {
			enqueueOne(t, other, commands.Enqueue{Queue: "mail", Priority: 50})
		}, []int{-1, 2}},
		"one that is more urgent, from here": {func(t *testing.T, mine, _ *commands.Service, _ []event.JobID) {
			enqueueOne(t, mine, commands.Enqueue{Queue: "mail", Priority: 50})
		}, []int{-1, 2}},
		"the last one that was taken comes back": {func(t *testing.T, _, other *commands.Service,
			ids []event.JobID) {
			apply(t, other, ids[1], commands.Cancel{})
			apply(t, other, ids[1], commands.Retry{})
		}, []int{2, 3}}, // it is due now, and so after them
		"the queue is paused": {func(t *testing.T, _, other *commands.Service, _ []event.JobID) {
			if _, err := other.Pause(t.Context(), "cli:test", "mail", ""); err != nil {
				t.Fatal(err)
			}
		}, nil},
		"the next one is for later": {func(t *testing.T, _, other *commands.Service, ids []event.JobID) {
			apply(t, other, ids[2], commands.Reschedule{RunAt: &later})
		}, []int{3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !slices.Contains(quick, name) {
				ledgertest.Slow(t)
			}
			dsn := ledgertest.Postgres(t)
			mine := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
			other := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
			t.Cleanup(func() { commandstest.Verify(t, mine.Store) })
			var ids []event.JobID
			for range 6 {
				ids = append(ids, enqueueOne(t, other, commands.Enqueue{Queue: "mail"}))
			}
			claimedIDs(t, mine, limit)
			test.change(t, mine, other, ids)
			got := claimedIDs(t, mine, limit)
			if len(got) != len(test.want) {
				t.Fatalf("got %v, want %v of %v", got, test.want, ids)
			}
			for i, w := range test.want {
				if known := indexOf(ids, got[i]); known != w {
					t.Errorf("the job %d is %d, want %d", i, known, w)
				}
			}
		})
	}
}

func indexOf(ids []event.JobID, id event.JobID) int {
	for i := range ids {
		if ids[i] == id {
			return i
		}
	}
	return -1
}

func apply(t *testing.T, s *commands.Service, id event.JobID, c commands.Command) {
	t.Helper()
	if _, err := s.Apply(t.Context(), "cli:test", id, c); err != nil {
		t.Fatal(err)
	}
}

func enqueueOne(t *testing.T, s *commands.Service, e commands.Enqueue) event.JobID {
	t.Helper()
	answers, err := s.Enqueue(t.Context(), "cli:test", e)
	if err != nil {
		t.Fatal(err)
	}
	return answers[0].ID
}

func claimedIDs(t *testing.T, s *commands.Service, limit int) (ids []event.JobID) {
	t.Helper()
	jobs, err := s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("w"),
		Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}
