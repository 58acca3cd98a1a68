package audit_test

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection/audit"
)

// TestRulesOfTimeEqualThoseOfCommands: the verifier states the rules a second time, so that it notices a
// changed command. Both must be changed in one step, and a new rule must still accept old events.
func TestRulesOfTimeEqualThoseOfCommands(t *testing.T) {
	if audit.MinLease != commands.MinLease || audit.MaxLease != commands.MaxLease {
		t.Errorf("leases from %s to %s, want %s to %s", audit.MinLease, audit.MaxLease, commands.MinLease,
			commands.MaxLease)
	}
	if audit.MaxSnoozes != commands.MaxSnoozes {
		t.Errorf("%d snoozes, want %d", audit.MaxSnoozes, commands.MaxSnoozes)
	}
	own := event.Backoff{Min: time.Millisecond, Max: 3 * time.Hour, Factor: 1.001}
	for failures := 1; failures < 40; failures++ {
		if least, most := audit.Backoff(own, failures); least > own.Wait(failures) || most < own.Wait(failures) {
			t.Fatalf("after failure %d from %s to %s, want %s within", failures, least, most, own.Wait(failures))
		}
		least, most := audit.Backoff(event.Backoff{}, failures)
		for _, job := range []event.JobID{"a", "b", "c", "d", "e", "f"} {
			for attempt := failures; attempt < failures+20; attempt++ {
				if wait := commands.Backoff(job, attempt, failures); wait < least || wait > most {
					t.Fatalf("after failure %d the wait is %s, want from %s to %s", failures, wait, least, most)
				}
			}
		}
	}
}
