package view

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/cron"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// What is read once for all who look is that of the ledger as it is, even if a failover has put other
// events in the place of some that were read.
func TestViewAfterFailoverThatLostEvents(t *testing.T) {
	for _, more := range []int{0, 1, 5} { // the ledger is shorter than it was, as long, longer
		viewAfterFailover(t, more)
	}
}

func viewAfterFailover(t *testing.T, more int) {
	t.Helper()
	dsn := ledgertest.Empty(t)
	service := &commands.Service{Store: ledgertest.OpenAt(t, dsn)}
	do := func(queue string, paused bool) {
		t.Helper()
		_, err := service.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: queue})
		if err == nil && paused {
			_, err = service.Pause(t.Context(), "cli:test", queue, "why")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var totals Totals
	var moments Moments
	var now Now
	verifier := NewVerifier(time.Now, cron.Schedule{})
	look := func(totals *Totals, moments *Moments, now *Now) (text string) {
		t.Helper()
		err := service.Store.Read(t.Context(), func(tx *ledger.Tx) error {
			tail, err := tx.Tail(t.Context())
			if err != nil {
				return err
			}
			text = ""
			if _, _, err = totals.Refresh(t.Context(), tx, func(queues map[string]*QueueTotals) {
				for _, name := range slices.Sorted(maps.Keys(queues)) {
					text += fmt.Sprint(name, queues[name].Kinds, "\n")
				}
			}); err != nil {
				return err
			}
			if err := moments.Refresh(t.Context(), tx); err != nil {
				return err
			}
			found, counts := moments.Columns(100, tail)
			figures, _, err := now.Read(t.Context(), tx, time.Now())
			text += fmt.Sprintln(found, counts, figures.Pos, figures.Last.Job, figures.Last.Kind())
			for _, q := range figures.Queues {
				text += fmt.Sprintln(q.Name, q.Ready, figures.Paces[q.Name].Enqueued, figures.Paces[q.Name].Depth)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	do("mail", false)
	do("render", false)
	back := ledgertest.Rewind(t, dsn)
	do("mail", true)
	do("mail", false)
	look(&totals, &moments, &now)
	verifier.check(t.Context(), service.Store, onlyNew)
	if lost := verifier.Last(); lost.Until != 5 || lost.Since != 0 {
		t.Fatalf("verified: %+v", lost)
	}
	back()
	service.Store = ledgertest.OpenAt(t, dsn)
	for range more {
		do("render", false)
	}
	if more > 0 {
		do("render", true)
	}
	want := look(new(Totals), new(Moments), new(Now))
	if got := look(&totals, &moments, &now); got != want {
		t.Errorf("%d more: got\n%s\nwant\n%s", more, got, want)
	}
	verifier.check(t.Context(), service.Store, onlyNew)
	got := verifier.Last()
	if got.Err != nil || len(got.Findings) > 0 || got.Since != 0 || got.Until != totals.pos {
		t.Errorf("%d more: verified %+v, up to %d", more, got, totals.pos)
	}
	commandstest.Verify(t, service.Store)
}
