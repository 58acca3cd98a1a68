package schedule_test

import (
	"errors"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// While a command outlives its cancel, also beyond its lease, no job of a later tick runs at the same time,
// however the ticks overlap. After its end they go on.
func TestTickWaitsForSurvivedCommand(t *testing.T) {
	for _, overlap := range []string{"skip", "wait", "replace"} {
		t.Run(overlap, func(t *testing.T) {
			r := newRig(t)
			r.set(event.ScheduleSet{Every: time.Hour, Overlap: overlap})
			r.wait(time.Hour)
			r.tick()
			request := commands.ClaimRequest{Queues: []string{"mail"}, Lease: time.Minute,
				Worker: event.Worker{Name: "w", Boot: "b"}}
			held, err := r.Claim(t.Context(), request)
			if err != nil || len(held) != 1 {
				t.Fatal(held, err)
			}
			if overlap == "replace" { // by the next tick
				_, err = r.Apply(t.Context(), "worker:w", held[0].ID, commands.Heartbeat{Token: held[0].Token,
					Lease: 2 * time.Hour})
				r.wait(time.Hour)
				r.tick()
			} else {
				_, err = r.Apply(t.Context(), "cli:ann@host", held[0].ID, commands.Cancel{})
			}
			if err != nil {
				t.Fatal(err)
			}
			for range 2 * 60 * 2 { // of half minutes: two ticks and many leases
				_, err := r.Apply(t.Context(), "worker:w", held[0].ID, commands.Heartbeat{Token: held[0].Token,
					Lease: time.Minute, CannotEnd: "pid 7 (sudo) belongs to root"})
				if !errors.Is(err, commands.ErrCancelled) {
					t.Fatal(err)
				}
				r.wait(30 * time.Second)
				r.tick()
				if more, err := r.Claim(t.Context(), request); err != nil || len(more) != 0 {
					log, _ := r.log(0)
					t.Fatalf("before its end: %d jobs, %v; %s", len(more), err, log)
				}
			}
			_, err = r.Apply(t.Context(), "worker:w", held[0].ID, commands.ReportStop{Token: held[0].Token})
			if err != nil {
				t.Fatal(err)
			}
			r.wait(time.Hour)
			r.tick()
			if next, err := r.Claim(t.Context(), request); err != nil || len(next) != 1 {
				log, _ := r.log(0)
				t.Errorf("after its end: %d jobs, %v; %s", len(next), err, log)
			}
		})
	}
}
