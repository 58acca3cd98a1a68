package ledgertest

import (
	"reflect"
	"testing"
	"time"

	"jobledger/ledger/event"
)

// sampleBodies returns a body of every kind, in the order of kinds, with every field set.
func sampleBodies() []event.Body {
	at := Epoch.Add(123456 * time.Microsecond)
	half, zero, code := 0.5, 0, 137
	const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	output := event.Output{StdoutSHA256: digest, StdoutBytes: 3, StderrSHA256: digest, StderrBytes: 1 << 40,
		StdoutKeptSHA256: digest, StderrKeptSHA256: digest}
	return []event.Body{
		&event.Enqueued{Queue: "mail", Priority: -7, RunAt: at, MaxAttempts: 5,
			MaxRuntime: 90*time.Minute + 1500*time.Microsecond, Version: "v2",
			Requires: []string{"gpu", "a \"b\" <c>"}, Key: "order-17/\u2028é",
			Tags: map[string]string{"b": "2", "a": "\x00\n\\"}, PayloadSHA256: digest, PayloadBytes: 1 << 20},
		&event.Claimed{LeaseUntil: at, MaxRuntime: time.Microsecond},
		&event.Heartbeat{LeaseUntil: at, Progress: &half, Note: "half\tdone"},
		&event.Succeeded{ResultSHA256: digest, ResultBytes: 3, ExitCode: &zero, Output: output},
		&event.Failed{ErrorCode: "exit", ErrorDetail: "line 1\nline 2 \x1b[31m", ExitCode: &code, Signal: "SIGKILL",
			RetryAt: at, Output: output},
		&event.Released{Reason: "shutdown", RunAt: at, Snooze: true, Output: output},
		&event.Reclaimed{Reason: event.LeaseExpired, LastHeartbeat: at, LeaseUntil: at.Add(time.Second),
			RetryAt: at.Add(time.Minute)},
		&event.Cancelled{Reason: "no longer needed"},
		&event.Retried{Reason: "fixed", RunAt: at},
		&event.Rescheduled{RunAt: at, Priority: 100, Reason: "urgent"},
		&event.Refused{Command: "succeed", Why: "the lease was lost", OfferedSHA256: digest, OfferedBytes: 12},
		&event.Erased{Bodies: 2, Bytes: 4096, Reason: "asked to"},
		&event.QueuePaused{Queue: "mail", Reason: "incident 12"},
		&event.QueueResumed{Queue: "mail", Reason: "over"},
		&event.WorkerStarted{Queues: []string{"mail", "video"}, Capabilities: []string{"gpu"}},
		&event.WorkerStopped{},
		&event.Rebuilt{Jobs: 4, Changed: 3, Missing: 2, Extra: 1},
		&event.Restored{From: "backup of Monday.db", Events: 4711, Lost: &code},
		&event.Imported{From: "export.jsonl", Events: 1000, MissingBodies: 2, AsOf: at},
		&event.Stopped{ExitCode: &code, Signal: "SIGKILL", Why: event.WhyCancelled},
		&event.TakenOver{LeaseUntil: at},
	}
}

// SampleEvents returns two events of every kind, one with every field of its body set and one with none.
func SampleEvents(t testing.TB) (list []event.Event) {
	t.Helper()
	for i, full := range sampleBodies() {
		if full.Kind() != event.Kinds()[i] {
			t.Fatalf("sample %d is of kind %s", i, full.Kind())
		}
		value := reflect.ValueOf(full).Elem()
		for j := range value.NumField() {
			if value.Field(j).IsZero() {
				t.Fatalf("sample of %s: the field %s is not set", full.Kind(), value.Type().Field(j).Name)
			}
		}
		empty := reflect.New(value.Type()).Interface().(event.Body)
		list = append(list, event.Event{Body: full}, event.Event{Body: empty})
	}
	if len(list) != 2*len(event.Kinds()) {
		t.Fatalf("samples of %d kinds, want %d", len(list)/2, len(event.Kinds()))
	}
	return list
}

// StorableEvents is SampleEvents for the engine under test: PostgreSQL stores no NUL character in JSON.
func StorableEvents(t testing.TB) []event.Event {
	t.Helper()
	list := SampleEvents(t)
	if OnPostgres(t) {
		list[0].Body.(*event.Enqueued).Tags["a"] = "\n\\"
	}
	return list
}
