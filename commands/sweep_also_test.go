package commands_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"jobledger/commands"
)

// While Also is at work, such as at a file of the archive, jobs are taken back as ever. Its errors are
// reported, and it has returned when Run does.
func TestSweepDoesNotWaitForAlso(t *testing.T) {
	inBubble(t, func(t *testing.T, q *queue, _ func(time.Duration)) {
		q.many(5)
		ctx, cancel := context.WithCancel(t.Context())
		wrong := errors.New("no room for a file")
		calls, at := 0, false
		w := commands.Sweeper{Service: q.Service, Actor: "sweeper:test", Also: func(ctx context.Context) error {
			if calls++; calls == 1 {
				return wrong
			}
			at = true
			<-ctx.Done()
			time.Sleep(time.Second)
			at = false
			return ctx.Err()
		}}
		reclaimed, failed := 0, 0
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx, 15*time.Second, func(r commands.SweepReport, err error) {
				reclaimed += len(r.Reclaimed)
				if errors.Is(err, wrong) {
					failed++
				} else if err != nil {
					t.Errorf("sweep: %v", err)
				}
			})
		}()
		time.Sleep(5 * time.Minute)
		cancel()
		<-ended
		if reclaimed != 5 || failed != 1 || calls != 2 || at {
			t.Errorf("%d jobs were taken back, and %d errors reported, of %d calls; still at it: %t", reclaimed,
				failed, calls, at)
		}
	})
}
