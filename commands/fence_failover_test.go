package commands_test

import (
	"errors"
	"slices"
	"testing"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// A claim that a failover has lost cannot end the one that has its place: that has the same seq, and perhaps
// that of another job the same number.
func TestLostClaimDoesNotEndTheOneInItsPlace(t *testing.T) {
	for _, another := range []bool{false, true} {
		dsn := ledgertest.Empty(t)
		store := ledgertest.OpenAt(t, dsn)
		service := &commands.Service{Store: store}
		enqueue := func() {
			t.Helper()
			if _, err := service.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"}); err != nil {
				t.Fatal(err)
			}
		}
		claim := func(name, boot string) commands.Op {
			t.Helper()
			jobs, err := service.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
				Worker: event.Worker{Name: name, Boot: boot}})
			if err != nil || len(jobs) != 1 {
				t.Fatal(jobs, err)
			}
			return commands.Op{Job: jobs[0], Command: commands.Succeed{Token: jobs[0].Token}}
		}
		if another {
			enqueue()
			claim("x", "01KDY9FY88TH00000000000010")
		} else {
			enqueue()
		}
		back := ledgertest.Rewind(t, dsn)
		if another {
			enqueue()
		}
		lost := claim("a", "01KDY9FY88TH00000000000011")
		back()
		if store = ledgertest.OpenAt(t, dsn); another {
			service.Store = store
			enqueue()
		}
		service.Store = store
		held := claim("b", "01KDY9FY88TH00000000000012")
		if lost.Job.N != held.Job.N || lost.Job.Seq != held.Job.Seq || (lost.Job.ID != held.Job.ID) != another {
			t.Fatalf("the claims are %+v and %+v", lost.Job, held.Job)
		}
		want := commands.ErrLeaseLost
		if another {
			want = commands.ErrNoJob
		}
		results, err := service.ApplyBatch(t.Context(), "worker:a", []commands.Op{lost})
		if err != nil || !errors.Is(results[0].Err, want) {
			t.Errorf("the lost claim ends with %v, %+v, want %v", err, results, want)
		}
		results, err = service.ApplyBatch(t.Context(), "worker:b", []commands.Op{held})
		if err != nil || results[0].Err != nil || results[0].Job.State != event.SucceededState {
			t.Errorf("the claim in its place ends with %v, %+v", err, results)
		}
		commandstest.Verify(t, store)
	}
}

// A store that was open all the time finds the jobs that a failover has queued again, although it has claimed
// them before.
func TestClaimAfterFailoverThatLostEvents(t *testing.T) {
	if !ledgertest.OnPostgres(t) {
		t.Skip("nothing can take the place of an open SQLite file")
	}
	dsn := ledgertest.Empty(t)
	service := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	claim := func() (ids []event.JobID) {
		t.Helper()
		for {
			jobs, err := service.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Limit: 2,
				Worker: event.Worker{Name: "w", Boot: "01KDY9FY88TH00000000000011"}})
			if errors.Is(err, ledger.ErrUnknown) { // its connection was cut
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(jobs) == 0 {
				return ids
			}
			for _, j := range jobs {
				ids = append(ids, j.ID)
			}
		}
	}
	five := slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, 5)
	if _, err := service.Enqueue(t.Context(), "cli:test", five...); err != nil {
		t.Fatal(err)
	}
	back := ledgertest.Rewind(t, dsn)
	before := claim()
	back()
	after := claim()
	if len(before) != 5 || !slices.Equal(before, after) {
		t.Errorf("it claimed %q, and then %q", before, after)
	}
	commandstest.Verify(t, service.Store)
}
