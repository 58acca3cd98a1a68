package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// What a handler returns counts as long as its claim is live: the ledger says that the work was done, and
// that its max runtime was over.
func TestSuccessAfterMaxRuntimeSaysSo(t *testing.T) {
	ledgertest.OfSQLite(t)
	for took, late := range map[time.Duration]bool{10 * time.Second: false, 65 * time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			service := &commands.Service{Store: ledgertest.Open(t)}
			j := one(t, service, commands.Enqueue{MaxRuntime: time.Minute})
			w := newWorker(service, func(context.Context, projection.Job) ([]byte, error) {
				time.Sleep(took)
				return []byte("done"), nil
			})
			var log bytes.Buffer
			w.MaxJobs, w.Poll = 1, time.Minute
			w.Log = slog.New(slog.NewTextHandler(&log, nil))
			if stats, err := w.Run(t.Context()); err != nil || stats.Succeeded != 1 {
				t.Fatalf("run: %+v, %v", stats, err)
			}
			events, err := service.History(t.Context(), j.ID)
			if err != nil {
				t.Fatal(err)
			}
			last, ok := events[len(events)-1].Body.(*event.Succeeded)
			if !ok || last.AfterMaxRuntime != late {
				t.Errorf("after %s: %s %+v", took, events[len(events)-1].Kind(), last)
			}
			if said := strings.Contains(log.String(), "succeeded after its max runtime"); said != late {
				t.Errorf("after %s the log has %q", took, log.String())
			}
			commandstest.Verify(t, service.Store)
		})
	}
}
