package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"jobledger/commands/schedule"
	"jobledger/ledger/event"
)

// What another program runs does not tick here before it is resumed, and then from the moment on at which the
// other side stopped: no tick twice, none lost.
func TestAdopt(t *testing.T) {
	r := newRig(t)
	spec := func(name string, minute int) schedule.Spec {
		return schedule.Spec{Name: name, Queue: "mail", Cron: fmt.Sprintf("%d * * * *", minute), CatchUp: "none"}
	}
	r.set(event.ScheduleSet{Name: "gone", Cron: "@daily"})
	r.set(event.ScheduleSet{Name: "ticks", Cron: "@daily"})
	a := schedule.Adoption{Specs: []schedule.Spec{spec("a", 10), spec("b", 20), spec("ticks", 30)},
		Elsewhere: []string{"a", "ticks"}, Remove: []string{"gone"}}
	adopt := func(a schedule.Adoption, want string) {
		t.Helper()
		changes, err := r.keep.Adopt(t.Context(), a, "moves")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range changes {
			got += fmt.Sprintf("%s %s %t; ", c.Spec.Name, c.Done, c.Paused)
		}
		if got != want {
			t.Errorf("got %s want %s", got, want)
		}
	}
	adopt(a, "a added true; b added true; ticks changed true; gone removed false; ")
	a.Remove = nil
	adopt(a, "a unchanged true; b unchanged true; ticks unchanged true; ")
	r.wait(time.Hour)
	if done := r.tick(); len(done.Jobs) > 0 {
		t.Errorf("paused ones made %d jobs", len(done.Jobs))
	}

	// The other side ended at 13:05 and it is 13:10:30: the tick of 13:10 is not lost.
	stopped := epoch.Add(65 * time.Minute)
	r.wait(10*time.Minute + 30*time.Second)
	since := map[string]time.Time{"a": stopped, "b": stopped, "nobody": stopped}
	resumed, err := r.keep.ResumeSince(t.Context(), since, "moved")
	if err != nil || len(resumed) != 2 {
		t.Fatal(resumed, err)
	}
	done := r.tick()
	if len(done.Jobs) != 1 || done.Jobs[0].Key != "a@2026-03-28T13:10:00Z" {
		t.Errorf("after that: %+v", done)
	}
	if resumed, err := r.keep.ResumeSince(t.Context(), since, "again"); err != nil || len(resumed) != 0 {
		t.Error("again:", resumed, err)
	}
	a.Specs, a.Elsewhere = a.Specs[:2], nil
	adopt(a, "a unchanged false; b unchanged false; ")
	a.Elsewhere = []string{"b"}
	adopt(a, "a unchanged false; b changed true; ")
	a = schedule.Adoption{Specs: a.Specs, Remove: []string{"gone"}}
	if _, err := r.keep.Adopt(t.Context(), a, ""); err == nil {
		t.Error("what is not there was removed")
	}
}
