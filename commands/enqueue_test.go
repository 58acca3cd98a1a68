package commands_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
	"jobledger/projection"
)

func TestEnqueueAgainIsTheSameJob(t *testing.T) {
	q := newQueue(t)
	byKey := q.enqueue(commands.Enqueue{Key: "k", Payload: []byte("p")})
	byID := q.enqueue(commands.Enqueue{ID: id(1), Payload: []byte("p")})
	both := q.enqueue(commands.Enqueue{ID: id(2), Key: "k2"})
	done := q.enqueue(commands.Enqueue{Key: "done", Queue: "other"})
	q.claimOne("w", from("other"))
	events := q.Tail()
	for _, test := range []struct {
		name string
		ask  commands.Enqueue
		want event.JobID // empty: a conflict
	}{
		{"same key and payload", commands.Enqueue{Key: "k", Payload: []byte("p"), Priority: 7}, byKey.ID},
		{"same key, another payload", commands.Enqueue{Key: "k", Payload: []byte("P")}, ""},
		{"same key, no payload", commands.Enqueue{Key: "k"}, ""},
		{"same id and payload", commands.Enqueue{ID: id(1), Payload: []byte("p")}, byID.ID},
		{"same id in small letters", commands.Enqueue{ID: strings.ToLower(id(1)), Payload: []byte("p")}, byID.ID},
		{"same id, another payload", commands.Enqueue{ID: id(1), Payload: []byte("P")}, ""},
		{"same id, another queue", commands.Enqueue{ID: id(1), Queue: "other", Payload: []byte("p")}, ""},
		{"same id, a key", commands.Enqueue{ID: id(1), Key: "k9", Payload: []byte("p")}, ""},
		{"same id and key", commands.Enqueue{ID: id(2), Key: "k2"}, both.ID},
		{"same id, another's key", commands.Enqueue{ID: id(2), Key: "k", Payload: []byte("p")}, ""},
		{"another id, same key and payload", commands.Enqueue{ID: id(3), Key: "k", Payload: []byte("p")}, byKey.ID},
		{"another id, same key, another payload", commands.Enqueue{ID: id(3), Key: "k", Payload: []byte("P")}, ""},
		{"a job that has been claimed", commands.Enqueue{Queue: "other", Key: "done"}, done.ID},
	} {
		if test.ask.Queue == "" {
			test.ask.Queue = "mail"
		}
		got, err := q.Enqueue(t.Context(), "cli:test", test.ask)
		var conflict *commands.ConflictError
		switch {
		case test.want == "" && (!errors.As(err, &conflict) || !errors.Is(err, commands.ErrConflict) ||
			conflict.Job == ""):
			t.Errorf("%s: got %+v, %v, want a ConflictError that names the job", test.name, got, err)
		case test.want != "" && (err != nil || got[0].ID != test.want || !got[0].Existing):
			t.Errorf("%s: got %+v, %v, want the job %s", test.name, got, err, test.want)
		}
	}
	if got := q.Tail(); got != events {
		t.Errorf("%d events were appended", got-events)
	}
	if other := q.enqueue(commands.Enqueue{Queue: "third", Key: "k",
		Payload: []byte("else")}); other.ID == byKey.ID {
		t.Errorf("a key holds beyond its queue")
	}
}

func TestEnqueueIsAllOrNothing(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{Key: "taken", Payload: []byte("p")})
	events := q.Tail()
	many := make([]commands.Enqueue, 200)
	for i := range many {
		many[i] = commands.Enqueue{Queue: "mail", Key: fmt.Sprint("k", i)}
	}
	conflicting := append(many[:199:199], commands.Enqueue{Queue: "mail", Key: "taken"})
	if _, err := q.Enqueue(t.Context(), "cli:test", conflicting...); !errors.Is(err, commands.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	invalid := append(many[:199:199], commands.Enqueue{Queue: "Mail"})
	if _, err := q.Enqueue(t.Context(), "cli:test", invalid...); !errors.Is(err, commands.ErrInvalid) ||
		!strings.HasPrefix(err.Error(), "job 200 of 200: ") {
		t.Errorf("got %v, want which one is invalid", err)
	}
	if got := q.Tail(); got != events {
		t.Fatalf("%d events are left of batches that failed", got-events)
	}
	jobs, err := q.Enqueue(t.Context(), "cli:test", many...)
	if err != nil || len(jobs) != 200 || q.Tail() != events+200 {
		t.Errorf("the batch without them: %d jobs, %v", len(jobs), err)
	}
	if many[0].MaxAttempts != 0 {
		t.Errorf("the caller's slice was changed: %+v", many[0])
	}
}

func TestEnqueueFindsDuplicatesInsideABatch(t *testing.T) {
	q := newQueue(t)
	jobs, err := q.Enqueue(t.Context(), "cli:test",
		commands.Enqueue{Queue: "mail", Key: "k", Payload: []byte("p")},
		commands.Enqueue{Queue: "mail", ID: id(1)},
		commands.Enqueue{Queue: "mail", Key: "k", Payload: []byte("p")},
		commands.Enqueue{Queue: "mail", ID: id(1)})
	if err != nil || jobs[2].ID != jobs[0].ID || jobs[3].ID != jobs[1].ID {
		t.Fatalf("got %+v, %v", jobs, err)
	}
	for i, want := range []bool{false, false, true, true} {
		if jobs[i].Existing != want {
			t.Errorf("job %d: existing is %t", i, jobs[i].Existing)
		}
	}
	_, err = q.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail", Key: "x"},
		commands.Enqueue{Queue: "mail", Key: "x", Payload: []byte("p")})
	if !errors.Is(err, commands.ErrConflict) || q.Tail() != 2 {
		t.Errorf("the same key with two payloads: %v, %d events", err, q.Tail())
	}
}

func TestEnqueueConcurrentlyWithOneKey(t *testing.T) {
	q := newQueue(t)
	var group sync.WaitGroup
	ids, fresh := make([]event.JobID, 32), make([]bool, 32)
	for i := range ids {
		group.Go(func() {
			jobs, err := q.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail", Key: "k",
				Payload: []byte("p")})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i], fresh[i] = jobs[0].ID, !jobs[0].Existing
		})
	}
	group.Wait()
	made := 0
	for i := range ids {
		if ids[i] != ids[0] {
			t.Errorf("two jobs: %s and %s", ids[0], ids[i])
		}
		if fresh[i] {
			made++
		}
	}
	if made != 1 || q.Tail() != 1 {
		t.Errorf("made %d times, %d events", made, q.Tail())
	}
}

func TestEnqueueRunAtByTheLedgersClock(t *testing.T) {
	q := newQueue(t)
	past := q.enqueue(commands.Enqueue{RunAt: q.Now.Add(-time.Hour)})
	finer := q.enqueue(commands.Enqueue{RunAt: q.Now.Add(time.Hour + 999).In(time.FixedZone("", 3600)),
		Requires: []string{}, Tags: map[string]string{}})
	if !past.RunAt.Equal(q.Now) || past.MaxAttempts != projection.DefaultMaxAttempts {
		t.Errorf("a run_at in the past means now, with 5 attempts: %+v", past)
	}
	if finer.RunAt != q.Now.Add(time.Hour) {
		t.Errorf("run_at is UTC in whole microseconds: got %s", finer.RunAt)
	}
	now := q.Now
	q.Now = now.Add(-time.Hour) // the clock is set back: at never decreases, so the job is ready now
	back := q.enqueue(commands.Enqueue{Priority: 1})
	if got := q.claimOne("w"); got.ID != back.ID || !got.ClaimedAt.Equal(now) {
		t.Errorf("claimed %s at %s, want %s at %s", got.ID, got.ClaimedAt, back.ID, now)
	}
}

func TestEnqueueLimits(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	tags := func(n int) map[string]string {
		m := make(map[string]string)
		for i := range n {
			m[fmt.Sprint("tag", i)] = ""
		}
		return m
	}
	labels := func(n int) []string { return strings.Split(strings.Repeat("x ", n)+"x", " ")[:n] }
	type job = commands.Enqueue
	for _, test := range []struct {
		field string
		good  job
		bad   []job
	}{
		{"queue", job{Queue: text(64)}, []job{{Queue: text(65)}, {Queue: ""}, {Queue: "Mail"}, {Queue: "a b"},
			{Queue: "é"}, {Queue: "a/b"}, {Queue: "a\x00"}}},
		{"queue", job{Queue: "a-z.0_9"}, []job{{Queue: "!"}, {Queue: "a!"}}},
		{"payload", job{Payload: make([]byte, 1<<20)}, []job{{Payload: make([]byte, 1<<20+1)}}},
		{"key", job{Key: text(255)}, []job{{Key: text(256)}, {Key: "a\x00b"}, {Key: "\xff"}}},
		{"priority", job{Priority: 100}, []job{{Priority: 101}, {Priority: -101}, {Priority: math.MaxInt}}},
		{"priority", job{Priority: -100}, nil},
		{"max_attempts", job{MaxAttempts: 1_000_000}, []job{{MaxAttempts: 1_000_001}, {MaxAttempts: -1}}},
		{"max_runtime", job{MaxRuntime: 8784 * time.Hour}, []job{{MaxRuntime: 8784*time.Hour + time.Microsecond},
			{MaxRuntime: -1}, {MaxRuntime: time.Nanosecond}}},
		{"run_at", job{RunAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}, []job{
			{RunAt: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
			{RunAt: time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)},
			{RunAt: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -7200))}}},
		{"version", job{Version: text(64)}, []job{{Version: text(65)}, {Version: "a b"}, {Version: "é"},
			{Version: "\n"}}},
		{"requires", job{Requires: labels(16)}, []job{{Requires: labels(17)}, {Requires: []string{""}},
			{Requires: []string{"a b"}}, {Requires: []string{text(65)}}}},
		{"tags", job{Tags: tags(32)}, []job{{Tags: tags(33)}, {Tags: map[string]string{"": "x"}},
			{Tags: map[string]string{"a": text(256)}}, {Tags: map[string]string{"a\x00": ""}},
			{Tags: map[string]string{"a": "\xff"}}}},
		{"tags", job{Tags: map[string]string{text(255): text(255)}},
			[]job{{Tags: map[string]string{text(256): ""}}}},
		{"id", job{ID: id(1)}, []job{{ID: "1"}, {ID: id(1) + "0"}, {ID: "8" + id(1)[1:]},
			{ID: strings.Replace(id(1), "K", "U", 1)}}},
	} {
		q := newQueue(t)
		if test.good.Queue == "" {
			test.good.Queue = "mail"
		}
		jobs, err := q.Enqueue(t.Context(), "cli:test", test.good)
		if err != nil {
			t.Errorf("%s at its limit: %v", test.field, err)
			continue
		}
		if got := q.claim("w", from(test.good.Queue),
			asVersion(test.good.Version, test.good.Requires...)); test.good.RunAt.IsZero() &&
			(len(got) != 1 || got[0].ID != jobs[0].ID || !bytes.Equal(got[0].Payload, test.good.Payload)) {
			t.Errorf("%s at its limit cannot be claimed: got %d jobs", test.field, len(got))
		}
		for _, bad := range test.bad {
			if bad.Queue == "" && test.field != "queue" {
				bad.Queue = "mail"
			}
			_, err := q.Enqueue(t.Context(), "cli:test", bad)
			var invalid *commands.InvalidError
			if !errors.As(err, &invalid) || !errors.Is(err, commands.ErrInvalid) ||
				strings.Split(invalid.Field, ":")[0] != test.field || invalid.Allowed == "" {
				t.Errorf("%s beyond its limit: got %v", test.field, err)
			}
		}
		if got := q.kinds(jobs[0].ID)[0]; got != "enqueued" || q.Tail() > 2 {
			t.Errorf("%s: %d events", test.field, q.Tail())
		}
	}
}

func TestCommandLimits(t *testing.T) {
	t.Parallel()
	text := func(n int) string { return strings.Repeat("x", n) }
	beat := func(change func(*commands.Heartbeat)) commands.Command {
		c := commands.Heartbeat{Token: "T", Lease: time.Minute}
		change(&c)
		return c
	}
	for _, test := range []struct {
		field string
		good  commands.Command
		bad   []commands.Command
	}{
		{"lease", beat(func(c *commands.Heartbeat) { c.Lease = 24 * time.Hour }), []commands.Command{
			beat(func(c *commands.Heartbeat) { c.Lease = 24*time.Hour + 1 }),
			beat(func(c *commands.Heartbeat) { c.Lease = time.Second - 1 }),
			beat(func(c *commands.Heartbeat) { c.Lease = 0 }),
			beat(func(c *commands.Heartbeat) { c.Lease = -time.Minute })}},
		{"progress", beat(func(c *commands.Heartbeat) { c.Progress = ref(1.0) }), []commands.Command{
			beat(func(c *commands.Heartbeat) { c.Progress = ref(1.01) }),
			beat(func(c *commands.Heartbeat) { c.Progress = ref(-0.01) }),
			beat(func(c *commands.Heartbeat) { c.Progress = ref(math.NaN()) }),
			beat(func(c *commands.Heartbeat) { c.Progress = ref(math.Inf(1)) })}},
		{"note", beat(func(c *commands.Heartbeat) { c.Note = text(1024) }), []commands.Command{
			beat(func(c *commands.Heartbeat) { c.Note = text(1025) }),
			beat(func(c *commands.Heartbeat) { c.Note = "\x00" })}},
		{"token", beat(func(c *commands.Heartbeat) {}), []commands.Command{commands.Succeed{},
			commands.Heartbeat{Lease: time.Minute},
			commands.Fail{}, commands.Release{}, commands.Succeed{Token: text(256)}, commands.Succeed{Token: "\x00"},
			commands.Fail{Token: "\xff"}}},
		{"result", commands.Succeed{Token: "T", Result: make([]byte, 1<<20)},
			[]commands.Command{commands.Succeed{Token: "T", Result: make([]byte, 1<<20+1)}}},
		{"detail", commands.Fail{Token: "T", Detail: text(8 << 10)},
			[]commands.Command{commands.Fail{Token: "T", Detail: text(8<<10 + 1)},
				commands.Fail{Token: "T", Detail: "\xff"}}},
		{"code", commands.Fail{Token: "T", Code: text(64)},
			[]commands.Command{commands.Fail{Token: "T", Code: text(65)}, commands.Fail{Token: "T", Code: "a b"}}},
		{"signal", commands.Fail{Token: "T", Signal: "KILL"},
			[]commands.Command{commands.Fail{Token: "T", Signal: "\xff"},
				commands.Fail{Token: "T", Signal: text(65)}}},
		{"retry_in", commands.Fail{Token: "T", RetryIn: ref(time.Duration(0))},
			[]commands.Command{commands.Fail{Token: "T", RetryIn: ref(-time.Second)},
				commands.Fail{Token: "T", RetryIn: ref(time.Duration(math.MaxInt64))}}},
		{"delay", commands.Release{Token: "T", Delay: 8784 * time.Hour},
			[]commands.Command{commands.Release{Token: "T", Delay: -1},
				commands.Release{Token: "T", Delay: 8785 * time.Hour}}},
		{"reason", commands.Release{Token: "T", Reason: text(1024)},
			[]commands.Command{commands.Release{Token: "T", Reason: text(1025)},
				commands.Cancel{Reason: text(1025)}, commands.Retry{Reason: "\x00"},
				commands.Reschedule{Reason: "\xff"}}},
		{"priority", commands.Reschedule{Priority: ref(100)},
			[]commands.Command{commands.Reschedule{Priority: ref(101)}, commands.Reschedule{Priority: ref(-101)}}},
		{"run_at", commands.Reschedule{RunAt: ref(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))},
			[]commands.Command{commands.Reschedule{RunAt: ref(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}}},
		{"command", commands.Cancel{}, []commands.Command{nil, &commands.Cancel{}}},
	} {
		q := newQueue(t)
		q.NewID = func() string { return "T" }
		j := q.enqueue(commands.Enqueue{ID: id(1)})
		if _, reschedule := test.good.(commands.Reschedule); !reschedule {
			q.claimOne("w")
		}
		for _, bad := range test.bad {
			before := q.Tail()
			_, err := q.Apply(t.Context(), "cli:test", j.ID, bad)
			var invalid *commands.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != test.field {
				t.Errorf("%s beyond its limit: %+.80v: got %v", test.field, bad, err)
			}
			out, err := q.ApplyBatch(t.Context(), "cli:test", []commands.Op{{Job: j, Command: bad}})
			if err != nil || !errors.Is(out[0].Err, commands.ErrInvalid) || q.Tail() != before {
				t.Errorf("%s beyond its limit, as a step: %+v, %v", test.field, out, err)
			}
		}
		if _, err := q.Apply(t.Context(), "cli:test", j.ID, test.good); err != nil {
			t.Errorf("%s at its limit: %v", test.field, err)
		}
	}
}

func TestClaimLimits(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	good := commands.ClaimRequest{Queues: []string{"mail"}, Worker: worker("w"), Lease: time.Minute}
	for field, change := range map[string][]func(*commands.ClaimRequest){
		"queue": {func(r *commands.ClaimRequest) { r.Queues = nil }, from("Mail"), from("mail", "")},
		"lease": {func(r *commands.ClaimRequest) { r.Lease = time.Millisecond },
			func(r *commands.ClaimRequest) { r.Lease = 25 * time.Hour },
			func(r *commands.ClaimRequest) { r.Lease = -1 }},
		"limit":      {limit(-1), limit(1001)},
		"version":    {asVersion("a b")},
		"capability": {asVersion("", ""), asVersion("", "a b")},
		"worker": {func(r *commands.ClaimRequest) { r.Worker.Name = "" },
			func(r *commands.ClaimRequest) { r.Worker.Boot = "" },
			func(r *commands.ClaimRequest) { r.Worker.Name = strings.Repeat("x", 256) },
			func(r *commands.ClaimRequest) { r.Worker.Name = "\xff" }},
		"max_runtime": {func(r *commands.ClaimRequest) { r.MaxRuntime = -1 },
			func(r *commands.ClaimRequest) { r.MaxRuntime = 1 },
			func(r *commands.ClaimRequest) { r.MaxRuntime = 8785 * time.Hour }},
	} {
		for i, c := range change {
			r := good
			c(&r)
			_, err := q.Claim(t.Context(), r)
			var invalid *commands.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("%s, case %d: got %v", field, i, err)
			}
		}
	}
	if q.Tail() != 1 {
		t.Errorf("%d events", q.Tail())
	}
}
