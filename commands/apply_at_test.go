package commands_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"jobledger/commands"
)

// Of several operators who have seen the same job, one changes it.
func TestApplyAtChangesOnlyWhatWasSeen(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	j := q.claimOne("w1")
	const rounds, operators = 20, 4
	for round := range rounds {
		var changed atomic.Int32
		var all sync.WaitGroup
		for range operators {
			all.Go(func() {
				priority := round%7 + 1
				command := commands.Command(commands.Release{Token: j.Token})
				if round > 0 {
					command = commands.Reschedule{Priority: &priority}
				}
				_, err := q.ApplyAt(t.Context(), "cli:test", j.ID, j.Seq, command)
				if err == nil {
					changed.Add(1)
				} else if moved, ok := errors.AsType[*commands.MovedOnError](err); !ok || moved.Seen != j.Seq {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		all.Wait()
		if changed.Load() != 1 {
			t.Fatalf("round %d: %d of %d changed it", round, changed.Load(), operators)
		}
		before := j.Seq
		var err error
		if j, err = q.Get(t.Context(), j.ID); err != nil || j.Seq != before+1 {
			t.Fatalf("round %d: seq %d after %d, %v", round, j.Seq, before, err)
		}
	}
	seen := j
	seen.Seq--
	results, err := q.ApplyBatch(t.Context(), "cli:test", []commands.Op{
		{Job: seen, Command: commands.Cancel{}, AsSeen: true}, {Job: j, Command: commands.Cancel{}, AsSeen: true},
		{Job: j, Command: commands.Erase{}, AsSeen: true}, {Job: j, Command: commands.Erase{}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{commands.ErrConflict, nil, commands.ErrConflict, nil} {
		if !errors.Is(results[i].Err, want) {
			t.Errorf("op %d: %v, want %v", i, results[i].Err, want)
		}
	}
}
