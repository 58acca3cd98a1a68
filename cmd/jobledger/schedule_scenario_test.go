package main

import (
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger/event"
	"jobledger/projection/defaults"
	"jobledger/projection/limit"
)

// arrange records events of sealing, of limits, of a queue's defaults, of schedules, and of a held job. wait
// lets time pass, by a minute or more.
func arrange(t testing.TB, s *commands.Service, wait func(time.Duration)) {
	t.Helper()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	const ada = "cli:ada@build7"
	_, err := s.StartSealing(t.Context(), ada, "", "", "audit")
	ok(err)
	_, err = s.Limit(t.Context(), ada, "mail", limit.Spec{Running: 7}, "the API takes no more")
	ok(err)
	_, err = s.SetDefaults(t.Context(), ada, "batch", defaults.Spec{MaxAttempts: 8, MaxRuntime: 5 * time.Minute,
		Backoff: event.Backoff{Min: time.Second, Max: time.Hour, Factor: 3}}, "slow by nature")
	ok(err)
	_, err = s.Enqueue(t.Context(), ada, commands.Enqueue{Queue: "batch"})
	ok(err)
	held, err := s.Enqueue(t.Context(), ada, commands.Enqueue{Queue: "held", Hold: true})
	ok(err)
	_, err = s.Apply(t.Context(), ada, held[0].ID, commands.Unblock{Reason: "all are there"})
	ok(err)
	_, err = s.Apply(t.Context(), ada, held[0].ID, commands.Edit{MaxAttempts: 9, MaxRuntime: time.Hour,
		Backoff: event.Backoff{Min: time.Second, Max: time.Hour, Factor: 3}, Requires: []string{"gpu"},
		Reschedule: commands.Reschedule{Reason: "patience"}})
	ok(err)
	_, err = s.Apply(t.Context(), ada, held[0].ID, commands.Cancel{})
	ok(err)
	for _, payload := range []string{"first", "second"} {
		_, err = s.Enqueue(t.Context(), ada, commands.Enqueue{Queue: "report", Payload: []byte(payload),
			Key: "daily", UniqueWhile: "queued", OnDuplicate: commands.ReplaceDuplicate})
		ok(err)
	}
	k := &schedule.Keeper{Service: s, Actor: ada}
	set := func(spec event.ScheduleSet) {
		t.Helper()
		spec.Queue = "mail"
		_, _, err := k.Set(t.Context(), spec, "asked for")
		ok(err)
	}
	set(event.ScheduleSet{Name: "nightly", Cron: "30 2 * * *", Zone: "Europe/Berlin", Jitter: time.Hour,
		Within: 6 * time.Hour, Priority: 3, MaxRuntime: time.Hour, Tags: map[string]string{"a": "b"},
		Requires: []string{"gpu"}, Version: "v2", Payload: "all"})
	set(event.ScheduleSet{Name: "often", Every: time.Minute})
	wait(90 * time.Second)
	ticker := schedule.Ticker{Service: s, Actor: "sweeper:w7", Pause: time.Nanosecond}
	for range 2 { // a job, and one that overlaps
		_, err = ticker.Tick(t.Context())
		ok(err)
		wait(time.Minute)
	}
	_, err = k.Run(t.Context(), "nightly", "")
	ok(err)
	_, _, err = k.Suspend(t.Context(), "often", "incident")
	ok(err)
	_, _, err = k.Resume(t.Context(), "often", "over")
	ok(err)
	ok(k.Remove(t.Context(), "often", "no longer needed"))
}
