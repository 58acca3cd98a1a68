package state

import (
	"testing"
	"time"

	"jobledger/ledger/event"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
	"jobledger/projection"
	"jobledger/projection/status"
)

func TestConcernsOfLeases(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		overdue int64
		want    Concern
	}{
		{0, Concern{Level: Info, Queue: "mail", Text: "1 lease ran out, the first 2m1s ago, not swept yet"}},
		{1, Concern{Level: Problem, Queue: "mail",
			Text: "1 lease ran out, the first 2m1s ago, and no process has swept; " +
				"is a worker running, or 'jobledger sweep'?", Code: "D20", Remedy: "sweep"}},
	} {
		q := status.Queue{Queue: projection.Queue{Name: "mail"}, Expired: 1, Overdue: tt.overdue,
			OldestLease: now.Add(-2*time.Minute - time.Second)}
		got := Concerns(q, now)
		if len(got) != 1 || got[0] != tt.want {
			t.Errorf("got %+v, want %+v", got, tt.want)
		}
	}
}

func TestConcernsOfPausedQueue(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	q := status.Queue{
		Queue:       projection.Queue{Name: "mail", Paused: true, Actor: "cli:ada", Since: now.Add(-time.Minute)},
		Jobs:        map[event.State]int64{event.Queued: 3},
		OldestReady: now.Add(-time.Hour),
		NextRunAt:   now.Add(time.Hour),
	}
	got := Concerns(q, now)
	want := []Concern{
		{Level: Warning, Queue: "mail", Text: "paused 1m ago by cli:ada: no reason given",
			Remedy: "resume -q mail"},
		{Level: Info, Queue: "mail", Text: "the next scheduled job runs in 1h"},
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
