package commands_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/load"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/status"
)

// TestWorkersAsOfShowsDeadWorkers looks back at a night in which a host lost its power at 00:17: one worker
// held jobs and one was idle. The history was imported, so there is no presence.
func TestWorkersAsOfShowsDeadWorkers(t *testing.T) {
	t.Parallel()
	s := ledgertest.Open(t)
	text, err := os.ReadFile(badNightFile)
	if err != nil {
		t.Fatal(err)
	}
	service := &commands.Service{Store: s}
	if _, err := load.Import(t.Context(), service, "cli:test", "bad-night.jsonl", parsed(text),
		nil); err != nil {
		t.Fatal(err)
	}
	night := time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC)
	read := func(ask func(tx *ledger.Tx) error) {
		t.Helper()
		if err := s.Read(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	at := func(tx *ledger.Tx, clock time.Duration) projection.Moment {
		t.Helper()
		m, err := projection.AtTime(t.Context(), tx, night.Add(clock))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, tt := range []struct {
		at   time.Duration
		want []string
	}{
		{12 * time.Minute, []string{"charlie-mail 1592 working", "charlie-render 1610 working"}},
		{17 * time.Minute, []string{"charlie-mail 1592 silent", "charlie-render 1610 working"}},
		{60 * time.Minute, []string{"charlie-mail 1592 silent", "charlie-mail 1619 working",
			"charlie-render 1610 silent", "charlie-render 1635 idle"}},
	} {
		read(func(tx *ledger.Tx) error {
			workers, err := status.Workers{At: at(tx, tt.at)}.Read(t.Context(), tx)
			var got []string
			for _, w := range workers {
				if w.Host == "charlie" {
					got = append(got, fmt.Sprintf("%s %d %s", w.Name, w.PID, w.State))
				}
				if w.SeenAt.After(night.Add(tt.at)) {
					t.Errorf("at %s: %s was seen later, at %s", tt.at, w.Name, w.SeenAt)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("at %s: got %q, want %q", tt.at, got, tt.want)
			}
			return err
		})
	}
	read(func(tx *ledger.Tx) error {
		lost, err := status.LostWorkers(t.Context(), tx, at(tx, 0), at(tx, 2*time.Hour))
		var got []string
		for _, w := range lost {
			got = append(got, fmt.Sprintf("%s %d %s", w.Name, w.PID, w.Replaced.Format("15:04")))
		}
		want := []string{"charlie-mail 1592 00:50", "charlie-render 1610 00:50"}
		if !slices.Equal(got, want) {
			t.Errorf("lost: got %q, want %q", got, want)
		}
		return err
	})
}
