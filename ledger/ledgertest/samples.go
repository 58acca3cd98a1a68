package ledgertest

import (
	"cmp"
	"reflect"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/event"
)

const (
	sampleJob = "01JCK4JQZ8V5Y2N3M4P6R7S9TA"
	digest    = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
)

// sampleBodies returns a body of the first kinds, in their order, with every field set to something awkward.
// What comes after them is made by type.
func sampleBodies() []event.Body {
	at := Epoch.Add(123456 * time.Microsecond)
	half, zero, code := 0.5, 0, 137
	output := event.Output{StdoutSHA256: digest, StdoutBytes: 3, StderrSHA256: digest, StderrBytes: 1 << 40,
		StdoutKeptSHA256: digest, StderrKeptSHA256: digest}
	cost := event.Cost{CPUUser: 90*time.Second + 1500*time.Microsecond, CPUSystem: time.Microsecond,
		MaxRSS: 612 << 20}
	return []event.Body{
		&event.Enqueued{Queue: "mail", Priority: -7, RunAt: at, MaxAttempts: 5,
			MaxRuntime: 90*time.Minute + 1500*time.Microsecond, Version: "v2",
			Requires: []string{"gpu", "a \"b\" <c>", event.LabelArgv}, Form: event.FormArgv, Key: "order-17/\u2028é",
			Tags: map[string]string{"b": "2", "a": "\x00\n\\"}, PayloadSHA256: digest, PayloadBytes: 1 << 20,
			Schedule: "nightly", Tick: at, Next: at.Add(time.Hour), Group: "customer é",
			Backoff: event.Backoff{Min: 1500 * time.Microsecond, Max: time.Hour, Factor: 1.5},
			After:   []string{sampleJob, sampleJob + ":failed"}, Before: []string{sampleJob + ":finished"},
			Hold: true, Blocked: true, UniqueWhile: event.WhileUnfinished},
		&event.Claimed{LeaseUntil: at, MaxRuntime: time.Microsecond, Limited: true},
		&event.Heartbeat{LeaseUntil: at, Progress: &half, Note: "half\tdone",
			CannotEnd: "pid 4711 (sudo) belongs to root"},
		&event.Succeeded{ResultSHA256: digest, ResultBytes: 3, ExitCode: &zero, Output: output, Cost: cost,
			AfterMaxRuntime: true},
		&event.Failed{ErrorCode: "exit", ErrorDetail: "line 1\nline 2 \x1b[31m", ExitCode: &code, Signal: "SIGKILL",
			RetryAt: at, Output: output, Cost: cost},
		&event.Released{Reason: "shutdown", RunAt: at, Snooze: true, Output: output, ExitCode: &code,
			Cost: cost},
		&event.Reclaimed{Reason: event.LeaseExpired, LastHeartbeat: at, LeaseUntil: at.Add(time.Second),
			RetryAt: at.Add(time.Minute), StillRunning: "pid 4711 (sudo) belongs to root"},
		&event.Cancelled{Reason: "no longer needed", Because: sampleJob},
		&event.Retried{Reason: "fixed", RunAt: at, Because: sampleJob, Alone: true, KeyTaken: true,
			MaxRuntime: 3 * time.Hour},
		&event.Rescheduled{RunAt: at, Priority: 100, Reason: "urgent"},
		&event.Refused{Command: "succeed", Why: "the lease was lost", OfferedSHA256: digest, OfferedBytes: 12},
		&event.Erased{Bodies: 2, Bytes: 4096, Reason: "asked to"},
		&event.QueuePaused{Queue: "mail", Reason: "incident 12"},
		&event.QueueResumed{Queue: "mail", Reason: "over"},
		&event.WorkerStarted{Queues: []string{"mail", "video"}, Capabilities: []string{"gpu"}},
		&event.WorkerStopped{},
		&event.Rebuilt{Jobs: 4, Changed: 3, Missing: 2, Extra: 1},
		&event.Restored{From: "backup of Monday.db", Events: 4711, Lost: &code,
			HeadSize: 5000, HeadRoot: "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="},
		&event.Imported{From: "export.jsonl", Events: 1000, MissingBodies: 2, AsOf: at},
		&event.Sealing{Origin: "jobledger/01JCK4SEAL", Key: "jobledger/01JCK4SEAL+33d7b496+AeHZWHVs",
			Reason: "audit", Sealed: true},
		&event.Archived{Lo: 256, Hi: 1024, Root: "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", SHA256: digest,
			Bytes: 40960, Jobs: 200, CarriedIn: 17, FirstAt: at, LastAt: at.Add(time.Hour), Reason: "yearly",
			Parts: map[string]string{"idx": digest, "sum": digest}},
		&event.QueueLimited{Queue: "mail", Group: "acme", Running: 7, PerGroup: 2, Rate: 100,
			RatePer: time.Minute, Burst: 5, GroupRate: 10, GroupRatePer: time.Second, GroupBurst: 3, Ageing: time.Hour,
			Reason: "the API takes no more"},
		&event.ScheduleSet{Name: "nightly", Queue: "mail", Cron: "30 2 * * *", Every: time.Hour, From: at,
			Zone: "Europe/Berlin", Jitter: time.Minute, CatchUp: event.CatchUpAll, Within: 6 * time.Hour,
			Overlap: event.OverlapReplace, Priority: 3, MaxAttempts: 2, MaxRuntime: time.Hour, Version: "v2",
			Requires: []string{"gpu"}, Tags: map[string]string{"a": "1"}, Payload: "all\n", Next: at,
			Form: event.FormArgv, Group: "customer é", Reason: "asked for",
			Backoff: event.Backoff{Min: time.Second, Max: time.Hour, Factor: 2}},
		&event.SchedulePaused{Name: "nightly", Reason: "incident 12"},
		&event.ScheduleResumed{Name: "nightly", Next: at, Reason: "over"},
		&event.ScheduleRemoved{Name: "nightly", Reason: "replaced"},
		&event.ScheduleSkipped{Name: "nightly", From: at, To: at.Add(time.Hour), Count: 2,
			Why: event.SkippedOverlap, Detail: "job 01JJOB is running", Next: at.Add(2 * time.Hour)},
		&event.Unblocked{Because: sampleJob, Hold: true, Blocked: true, Reason: "all there"},
		&event.Stopped{ExitCode: &code, Signal: "SIGKILL", Why: event.WhyCancelled, Cost: cost},
		&event.TakenOver{LeaseUntil: at},
		&event.QueueDefaults{Queue: "mail", MaxAttempts: 8, MaxRuntime: 5 * time.Minute,
			Backoff: event.Backoff{Min: time.Second, Max: time.Hour, Factor: 2}, Reason: "the API is slow",
			Commands: true},
		&event.Replaced{PayloadSHA256: digest, PayloadBytes: 17},
		&event.Removed{Hi: 1024, Jobs: 200, Events: 900, Bodies: 150, BodyBytes: 4096, Keys: 12, More: true,
			Reason: "yearly", Kept: 30, Erased: sampleJob, Ledger: "5f2c00112233445566778899aabbccdd",
			Left: []event.Left{{Queue: "mail", Succeeded: 120, Failed: 60, Cancelled: 11}, {Queue: "näß", Failed: 9}}},
		&event.ArchivePolicy{OlderThan: 90 * 24 * time.Hour, KeepFailed: 365 * 24 * time.Hour, RemoveLogs: true,
			Reason: "the disk", KeepBodies: true},
		&event.Survived{CannotEnd: "pid 4711 (sudo) belongs to root", LeaseUntil: at},
		&event.ArchiveDescribed{Hi: 1024, Parts: map[string]string{"idx": digest, "sum": digest},
			Left: []event.Left{{Queue: "mail", Succeeded: 120, Cancelled: 11}}},
	}
}

// madeBody returns a body of a kind with a value in each field, by its type and its tag.
func madeBody(t testing.TB, kind event.Kind) event.Body {
	t.Helper()
	body, err := event.Decode(kind, "{}", nil, &event.Worker{})
	if err != nil {
		t.Fatal(err)
	}
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag.Get("event")
			switch field := v.Field(i).Addr().Interface().(type) {
			case *time.Time:
				*field = Epoch
			case *time.Duration:
				*field = time.Minute
			case *string:
				_, words, _ := strings.Cut(tag, ",oneof=")
				*field, _, _ = strings.Cut(cmp.Or(words, "text"), "|")
				if strings.Contains(tag, ",digest") {
					*field = digest
				}
			case *event.JobID:
				*field = sampleJob
			case *bool:
				*field = true
			case *int:
				*field = 1
			case *int64:
				*field = 1
			case *float64:
				*field = 1.5
			case **int:
				*field = new(int)
			case *[]string:
				*field = []string{"text"}
			case *map[string]string:
				*field = map[string]string{"a": "text"}
			default:
				fill(v.Field(i))
			}
		}
	}
	fill(reflect.ValueOf(body).Elem())
	return body
}

// SampleEvents returns two events of every kind, one with every field of its body set and one with none.
func SampleEvents(t testing.TB) (list []event.Event) {
	t.Helper()
	bodies := sampleBodies()
	for _, kind := range event.Kinds()[len(bodies):] {
		bodies = append(bodies, madeBody(t, kind))
	}
	for i, full := range bodies {
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
