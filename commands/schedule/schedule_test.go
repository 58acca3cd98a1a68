package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/schedule"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/audit"
	"jobledger/projection/schedules"
)

// rig is a ledger with a clock of its own, a keeper and a ticker.
type rig struct {
	*testing.T
	*commands.Service
	keep   schedule.Keeper
	ticker schedule.Ticker
	now    atomic.Int64 // microseconds since epoch
}

var epoch = time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) // the day before clocks change in Europe

func newRig(t *testing.T) *rig {
	r := &rig{T: t, Service: &commands.Service{Store: ledgertest.Open(t)}}
	r.Store.Now = func() time.Time { return epoch.Add(time.Duration(r.now.Load()) * time.Microsecond) }
	r.keep = schedule.Keeper{Service: r.Service, Actor: "cli:ann@host"}
	r.ticker = schedule.Ticker{Service: r.Service, Actor: "sweeper:w", Pause: time.Nanosecond}
	t.Cleanup(r.verify)
	return r
}

func (r *rig) wait(d time.Duration) { r.now.Add(d.Microseconds()) }

func (r *rig) set(spec event.ScheduleSet) schedules.Schedule {
	r.Helper()
	if spec.Name == "" {
		spec.Name = "nightly"
	}
	if spec.Queue == "" {
		spec.Queue = "mail"
	}
	s, _, err := r.keep.Set(r.Context(), spec, "")
	if err != nil {
		r.Fatal(err)
	}
	return s
}

func (r *rig) tick() schedule.Ticked {
	r.Helper()
	done, err := r.ticker.Tick(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return done
}

// log returns what the events after pos say of schedules, and the last pos.
func (r *rig) log(after int64) (text string, last int64) {
	r.Helper()
	var lines []string
	at := func(t time.Time) string { return t.Format("02T15:04") }
	err := r.Store.Read(context.Background(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(context.Background(), ledger.Filter{After: after}) {
			if err != nil {
				return err
			}
			last = e.Pos
			switch b := e.Body.(type) {
			case *event.Enqueued:
				lines = append(lines, "job "+at(b.Tick))
			case *event.ScheduleSkipped:
				lines = append(lines, fmt.Sprintf("%s %d %s-%s", b.Why, b.Count, at(b.From), at(b.To)))
			case *event.Cancelled:
				lines = append(lines, "cancelled")
			}
		}
		return nil
	})
	if err != nil {
		r.Error(err)
	}
	return strings.Join(lines, ", "), last
}

// verify checks the ledger, and that each schedule's events name the ticks that its times have, all of them.
func (r *rig) verify() {
	ctx := context.Background()
	err := r.Store.Read(ctx, func(tx *ledger.Tx) error {
		v, err := audit.Verify(ctx, tx, nil)
		for _, f := range v.Findings {
			r.Errorf("verify: %+v", f)
		}
		if err != nil {
			return err
		}
		f := make(schedules.Fold)
		for e, err := range tx.Events(ctx, ledger.Filter{}) {
			if err != nil {
				return err
			}
			before := f[schedules.Of(e.Body)]
			if err := f.Add(e); err != nil {
				return err
			}
			from, to, count, next := before.Next, before.Next, int64(1), time.Time{}
			switch b := e.Body.(type) {
			case *event.ScheduleSkipped:
				to, count, next = b.To, b.Count, b.Next
			case *event.Enqueued:
				if b.Tick.IsZero() {
					continue
				}
				next = b.Next
			default:
				continue
			}
			times, err := schedule.Times(before.Spec)
			if err != nil {
				return err
			}
			counted := int64(1)
			for ; from.Before(to); counted++ {
				from = times.Next(from)
			}
			if !from.Equal(to) || counted != count || !next.Equal(times.Next(to)) {
				r.Errorf("event %d: %d ticks up to %s and then %s, got %+v", e.Pos, counted, from,
					times.Next(to), e.Body)
			}
		}
		differing, err := f.Differences(ctx, tx)
		if len(differing) > 0 {
			r.Errorf("the table differs: %v", differing)
		}
		return err
	})
	if err != nil {
		r.Error(err)
	}
}

// TestTickerCatchesUp lets all processes be down over some ticks, and then one comes.
func TestTickerCatchesUp(t *testing.T) {
	for _, c := range []struct {
		name, catchUp string
		within, down  time.Duration
		want          string
	}{
		{"on time", "last", 0, time.Hour, "job 28T13:00"},
		{"before the first", "all", 0, time.Hour - time.Microsecond, ""},
		{"last", "last", 0, 5*time.Hour + time.Minute, "missed 4 28T13:00-28T16:00, job 28T17:00"},
		{"all", "all", 0, 3 * time.Hour, "job 28T13:00, job 28T14:00, job 28T15:00"},
		{"none", "none", 0, 3*time.Hour + 2*time.Minute, "late 3 28T13:00-28T15:00"},
		{"none, nearly on time", "none", 0, 3*time.Hour + 30*time.Second, "late 2 28T13:00-28T14:00, job 28T15:00"},
		{"last within", "last", time.Hour, 3*time.Hour + 30*time.Minute,
			"too_old 2 28T13:00-28T14:00, job 28T15:00"},
		{"all within", "all", 90 * time.Minute, 4 * time.Hour,
			"too_old 2 28T13:00-28T14:00, job 28T15:00, job 28T16:00"},
		{"within a short time", "last", 10 * time.Minute, 3*time.Hour + 30*time.Minute,
			"too_old 3 28T13:00-28T15:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.set(event.ScheduleSet{Cron: "0 * * * *", CatchUp: c.catchUp, Within: c.within})
			r.wait(c.down)
			r.tick()
			got, _ := r.log(0)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if done := r.tick(); len(done.Jobs) != 0 || done.Skipped != 0 {
				t.Errorf("a second look did something: %+v", done)
			}
		})
	}
}

// TestTickerCatchesUpWithManyTicks has more ticks due than one look judges, and than are caught up with.
func TestTickerCatchesUpWithManyTicks(t *testing.T) {
	r := newRig(t)
	r.set(event.ScheduleSet{Name: "all", Every: time.Second, CatchUp: "all"})
	r.set(event.ScheduleSet{Name: "last", Every: time.Second})
	const down = 30_000
	r.wait(down * time.Second)
	done := r.tick()
	if len(done.Jobs) != 1001 || done.Skipped != 2*down-1001 {
		t.Errorf("got %d jobs and %d skipped, want 1001 and %d", len(done.Jobs), done.Skipped, 2*down-1001)
	}
	first, last := epoch.Add(down*time.Second), time.Time{}
	for _, j := range done.Jobs {
		if j.Schedule != "all" {
			continue
		}
		if j.Tick.Before(first) {
			first = j.Tick
		}
		if j.Tick.Before(last) {
			t.Fatalf("tick %s after %s", j.Tick, last)
		}
		last = j.Tick
	}
	if want := epoch.Add((down - 999) * time.Second); !first.Equal(want) ||
		!last.Equal(epoch.Add(down*time.Second)) {
		t.Errorf("jobs from %s to %s, want the last thousand, from %s", first, last, want)
	}
}

func TestTickerOverlap(t *testing.T) {
	for overlap, want := range map[string]string{
		"skip":    "job 28T13:00, overlap 1 28T14:00-28T14:00, cancelled, job 28T15:00",
		"wait":    "job 28T13:00, job 28T14:00, cancelled, cancelled, job 28T15:00",
		"replace": "job 28T13:00, cancelled, job 28T14:00, cancelled, job 28T15:00",
		"allow":   "job 28T13:00, job 28T14:00, cancelled, cancelled, job 28T15:00",
	} {
		t.Run(overlap, func(t *testing.T) {
			r := newRig(t)
			r.set(event.ScheduleSet{Every: time.Hour, Overlap: overlap, Payload: "all of it"})
			r.wait(time.Hour)
			first := r.tick().Jobs[0]
			r.wait(time.Hour)
			second := r.tick()
			for _, j := range append(second.Jobs, first) { // they end
				_, err := r.Apply(t.Context(), "cli:ann@host", j.ID, commands.Cancel{})
				if err != nil {
					t.Fatal(err)
				}
			}
			r.wait(time.Hour)
			r.tick()
			if got, _ := r.log(0); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestTickerJobIsAsSet(t *testing.T) {
	r := newRig(t)
	r.set(event.ScheduleSet{Cron: "30 2 * * *", Zone: "Europe/Berlin", Jitter: time.Hour, Priority: 7,
		MaxAttempts: 3, MaxRuntime: time.Minute, Version: "v2", Requires: []string{"gpu"},
		Tags: map[string]string{"a": "b"}, Payload: "{}"})
	r.wait(24 * time.Hour)
	j := r.tick().Jobs[0]
	tick := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC) // 02:30 was skipped
	if j.Key != "nightly@2026-03-29T01:00:00Z" || !j.Tick.Equal(tick) || j.Schedule != "nightly" ||
		j.Queue != "mail" || j.Priority != 7 || j.MaxAttempts != 3 || j.MaxRuntime != time.Minute ||
		j.Version != "v2" || len(j.Requires) != 1 || j.Tags["a"] != "b" || string(j.Payload) != "{}" {
		t.Errorf("got %+v", j)
	}
	if !j.RunAt.Equal(epoch.Add(24 * time.Hour)) {
		t.Errorf("runs at %s, want now: its time has passed", j.RunAt)
	}
	r.now.Store((13 * time.Hour).Microseconds())
	seen := make(map[time.Duration]bool)
	for i := range 20 {
		name := fmt.Sprint("s", i)
		s := r.set(event.ScheduleSet{Name: name, Every: 24 * time.Hour, Jitter: time.Hour,
			From: epoch.Add(26 * time.Hour)})
		r.now.Store((26 * time.Hour).Microseconds())
		j := r.tick().Jobs[0]
		d := j.RunAt.Sub(s.Next)
		if d < 0 || d >= time.Hour {
			t.Errorf("%s runs %s after its tick", name, d)
		}
		seen[d.Truncate(5*time.Minute)] = true
		r.now.Store((13 * time.Hour).Microseconds())
	}
	if len(seen) < 6 {
		t.Errorf("20 schedules ran in %d of twelve parts of the hour", len(seen))
	}
}

// TestTickerRefusedJobHoldsUpNoOther has the key of one tick taken.
func TestTickerRefusedJobHoldsUpNoOther(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"a", "b", "c"} {
		r.set(event.ScheduleSet{Name: name, Every: time.Hour})
	}
	_, err := r.Enqueue(t.Context(), "cli:ann@host", commands.Enqueue{Queue: "mail",
		Key: schedule.Key("b", epoch.Add(time.Hour))})
	if err != nil {
		t.Fatal(err)
	}
	_, before := r.log(0)
	r.wait(time.Hour)
	r.tick()
	got, _ := r.log(before)
	if want := "job 28T13:00, refused 1 28T13:00-28T13:00, job 28T13:00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestKeeperSet(t *testing.T) {
	r := newRig(t)
	spec := event.ScheduleSet{Name: "nightly", Queue: "mail", Cron: "0 2 * * *", Zone: "Europe/Berlin"}
	first := r.set(spec)
	if want := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC); !first.Next.Equal(want) {
		t.Errorf("next is %s, want %s", first.Next, want)
	}
	if _, changed, err := r.keep.Set(t.Context(), spec, "again"); changed || err != nil {
		t.Errorf("set again: changed %t, %v", changed, err)
	}
	r.wait(36 * time.Hour) // over two ticks, which nothing looked at
	spec.Cron = "0 3 * * *"
	if s := r.set(spec); !s.Next.After(r.Store.Now()) {
		t.Errorf("editing makes a tick of the past due: %s", s.Next)
	}
	if done := r.tick(); len(done.Jobs) != 0 {
		t.Errorf("editing fired: %+v", done)
	}
	every := r.set(event.ScheduleSet{Name: "often", Every: time.Hour})
	r.wait(10 * time.Minute)
	if s := r.set(event.ScheduleSet{Name: "often", Every: time.Hour}); !s.Next.Equal(every.Next) {
		t.Errorf("the same period moved from %s to %s", every.Next, s.Next)
	}
	r.wait(time.Hour)
	r.tick()
	before, _ := r.log(0)
	if _, changed, err := r.keep.Suspend(t.Context(), "often", "incident"); !changed || err != nil {
		t.Errorf("paused: %t, %v", changed, err)
	}
	if s := r.set(event.ScheduleSet{Name: "often", Every: time.Hour, Priority: 3}); !s.Next.IsZero() ||
		!s.Paused {
		t.Errorf("editing resumed it: %+v", s)
	}
	r.wait(5 * time.Hour)
	r.tick()
	s, changed, err := r.keep.Resume(t.Context(), "often", "over")
	if !changed || err != nil || !s.Next.After(r.Store.Now()) {
		t.Errorf("resumed: %+v, %t, %v", s, changed, err)
	}
	r.tick()
	if after, _ := r.log(0); after != before {
		t.Errorf("ticks while paused counted: %s", strings.TrimPrefix(after, before))
	}
}

func TestKeeperApplyPrunes(t *testing.T) {
	r := newRig(t)
	r.set(event.ScheduleSet{Name: "old", Every: time.Hour})
	r.set(event.ScheduleSet{Name: "same", Every: time.Hour})
	done, err := r.keep.Apply(t.Context(), []event.ScheduleSet{
		{Name: "new", Queue: "mail", Cron: "@daily"}, {Name: "same", Queue: "mail", Every: time.Hour}}, true, "git")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range done {
		got = append(got, c.Spec.Name+" "+c.Done)
	}
	if want := "new added, same unchanged, old removed"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	if err := r.keep.Remove(t.Context(), "old", ""); !errors.Is(err, schedule.ErrNone) {
		t.Errorf("remove what is gone: %v", err)
	}
}

func TestKeeperRun(t *testing.T) {
	r := newRig(t)
	r.set(event.ScheduleSet{Every: time.Hour})
	j, err := r.keep.Run(t.Context(), "nightly", "")
	if err != nil || j.Schedule != "nightly" || !j.Tick.IsZero() || j.State != event.Queued {
		t.Fatalf("got %+v, %v", j, err)
	}
	r.wait(time.Hour)
	r.tick() // it overlaps
	if got, want := first(r.log(0)), "job 01T00:00, overlap 1 28T13:00-28T13:00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func first(text string, _ int64) string { return text }

func TestKeeperRefuses(t *testing.T) {
	r := newRig(t)
	ok := event.ScheduleSet{Name: "a", Queue: "mail", Cron: "@daily"}
	for field, change := range map[string]func(*event.ScheduleSet){
		"name":       func(s *event.ScheduleSet) { s.Name = "A b" },
		"queue":      func(s *event.ScheduleSet) { s.Queue = "" },
		"cron":       func(s *event.ScheduleSet) { s.Cron = "0 0 31 2 *" },
		"cron, both": func(s *event.ScheduleSet) { s.Every = time.Hour },
		"cron, none": func(s *event.ScheduleSet) { s.Cron = "" },
		"every":      func(s *event.ScheduleSet) { s.Cron, s.Every = "", -time.Second },
		"zone":       func(s *event.ScheduleSet) { s.Zone = "Local" },
		"from":       func(s *event.ScheduleSet) { s.From = epoch },
		"overlap":    func(s *event.ScheduleSet) { s.Overlap = "both" },
		"catch_up":   func(s *event.ScheduleSet) { s.CatchUp = "some" },
		"jitter":     func(s *event.ScheduleSet) { s.Jitter = -1 },
		"within":     func(s *event.ScheduleSet) { s.Within = -1 },
		"payload":    func(s *event.ScheduleSet) { s.Payload = "\xff" },
		"payload, big": func(s *event.ScheduleSet) {
			s.Payload = strings.Repeat("x", commands.MaxSchedulePayload+
				1)
		},
		"max_attempts": func(s *event.ScheduleSet) { s.MaxAttempts = -1 },
	} {
		spec := ok
		change(&spec)
		_, _, err := r.keep.Set(t.Context(), spec, "")
		invalid, is := errors.AsType[*commands.InvalidError](err)
		want, _, _ := strings.Cut(field, ",")
		if !is || invalid.Field != want {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// TestTickersOnJumpingClocks has several processes look at the same schedules with clocks that jump by an
// hour or a day, while an operator changes the schedules: verify finds each tick once, as a job or as
// skipped.
func TestTickersOnJumpingClocks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(ledgertest.Size(1, 2, 20)) {
		dice := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t)
		policies := []string{"last", "all", "none"}
		overlaps := []string{"skip", "wait", "replace", "allow"}
		spec := func(i int) event.ScheduleSet {
			return event.ScheduleSet{Name: fmt.Sprint("s", i), Queue: "mail", CatchUp: policies[i%3],
				Overlap: overlaps[dice.IntN(4)], Cron: []string{"*/7 * * * *", "30 2 * * *", "@hourly"}[dice.IntN(3)],
				Zone: []string{"Europe/Berlin", "UTC"}[dice.IntN(2)]}
		}
		for i := range 6 {
			r.set(spec(i))
		}
		var others []*schedule.Ticker
		for range 3 {
			store := ledgertest.OpenAt(t, r.Store.DSN())
			ahead := time.Duration(dice.IntN(7200)-3600) * time.Second
			store.Now = func() time.Time { return r.Store.Now().Add(ahead) }
			others = append(others, &schedule.Ticker{Service: &commands.Service{Store: store}, Actor: "sweeper:o",
				Pause: time.Nanosecond})
		}
		for range ledgertest.Size(4, 8, 20) {
			jump := []time.Duration{time.Minute, 20 * time.Minute, time.Hour, -time.Hour, 24 * time.Hour,
				-24 * time.Hour}[dice.IntN(6)]
			r.wait(jump)
			var group sync.WaitGroup
			for _, o := range others {
				group.Go(func() {
					if _, err := o.Tick(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			var err error
			switch name := fmt.Sprint("s", dice.IntN(6)); dice.IntN(4) {
			case 0:
				_, _, err = r.keep.Suspend(t.Context(), name, "")
			case 1:
				_, _, err = r.keep.Resume(t.Context(), name, "")
			case 2:
				err = r.keep.Remove(t.Context(), name, "")
			default:
				r.set(spec(dice.IntN(6)))
			}
			if err != nil && !errors.Is(err, schedule.ErrNone) {
				t.Error(err)
			}
			group.Wait()
		}
	}
}

// TestVerifyFindsAlteredTimetable changes each column of a schedule's row; rebuild repairs it.
func TestVerifyFindsAlteredTimetable(t *testing.T) {
	r := newRig(t)
	r.set(event.ScheduleSet{Every: time.Hour})
	r.wait(time.Hour)
	r.tick()
	for _, change := range []string{`next_at = next_at + 1`, `paused = 1`, `since = 5`, `actor = 9`,
		`reason = 'x'`, `last_tick = NULL`, `last_job = 7`, `spec = '{"name":"nightly","queue":"other"}'`} {
		var findings []audit.Finding
		err := r.Store.Write(t.Context(), func(tx *ledger.Tx) error {
			_, err := tx.Exec(`UPDATE timetable SET ` + change)
			return err
		})
		if err == nil {
			err = r.Store.Read(t.Context(), func(tx *ledger.Tx) error {
				v, err := audit.Verify(t.Context(), tx, nil)
				findings = v.Findings
				return err
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(findings) == 0 || findings[0].Code != audit.FindSchedule {
			t.Errorf("%s: verify finds %v", change, findings)
		}
		rebuilt, err := r.Rebuild(t.Context(), "cli:ann@host")
		if err != nil || rebuilt.Schedules != 1 {
			t.Fatalf("%s: rebuilt %+v, %v", change, rebuilt, err)
		}
	}
	var all []schedules.Schedule
	err := r.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		all, err = schedules.List(t.Context(), tx)
		return err
	})
	if err != nil || len(all) != 1 || !all[0].LastTick.Equal(epoch.Add(time.Hour)) {
		t.Errorf("after rebuild: %+v, %v", all, err)
	}
}

// A job that has failed for good does not keep the next ticks of its schedule from having theirs.
func TestTickerGoesOnAfterFailures(t *testing.T) {
	for _, overlap := range []string{"skip", "wait", "replace", "allow"} {
		t.Run(overlap, func(t *testing.T) {
			r := newRig(t)
			r.set(event.ScheduleSet{Every: time.Hour, Overlap: overlap})
			for n := range 4 {
				r.wait(time.Hour)
				r.tick()
				jobs, err := r.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Limit: 2,
					Worker: event.Worker{Name: "w", Boot: "b"}, Lease: time.Minute})
				if err != nil || len(jobs) != 1 {
					t.Fatalf("tick %d: %d jobs, %v", n+1, len(jobs), err)
				}
				_, err = r.Apply(t.Context(), "worker:w", jobs[0].ID,
					commands.Fail{Token: jobs[0].Token, NoRetry: true})
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
