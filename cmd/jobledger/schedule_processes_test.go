//go:build unix

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/schedules"
)

// looker starts a process that looks at the schedules: a worker of another queue, or a sweeper.
func (r rig) looker(i int, clock time.Duration) *running {
	r.Helper()
	command := invoke("sweep", "--every", "100ms")
	if i%2 == 0 {
		command = invoke("work", "-q", "idle", "--worker", fmt.Sprint("w", i), "--", "true")
	}
	return r.start(r.cmd(command.ahead(clock)))
}

// apply sets schedules from lines of JSON.
func (r rig) apply(lines []string) {
	r.Helper()
	if err := os.WriteFile(r.path("schedules.jsonl"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		r.Fatal(err)
	}
	r.must(0, invoke("schedule", "apply", "schedules.jsonl"))
}

// wantNextAfter waits until the next tick of every schedule is after this moment.
func (r rig) wantNextAfter(tick time.Time) {
	r.Helper()
	r.eventually(fmt.Sprintf("all schedules are past %s", tick), func() bool {
		past := false
		r.ledger(db, func(s *ledger.Store) {
			err := s.Read(r.Context(), func(tx *ledger.Tx) error {
				next, err := schedules.NextTick(r.Context(), tx)
				past = next.After(tick)
				return err
			})
			if err != nil {
				r.Fatal(err)
			}
		})
		return past
	})
}

func stop(processes []*running) {
	for _, p := range processes {
		_ = p.Process.Kill()
		<-p.exited
	}
}

// TestScheduleManyProcesses has many processes look at the same schedules, which tick each second. Half of
// them are killed and others started meanwhile. Each tick is one job.
func TestScheduleManyProcesses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	processes, many, ticks := ledgertest.Size(2, 3, 6), ledgertest.Size(8, 20, 80), ledgertest.Size(2, 3, 8)
	r.must(0, invoke("init"))
	first := time.Now().UTC().Truncate(time.Second).Add(3 * time.Second)
	var lines []string
	for i := range many {
		lines = append(lines, fmt.Sprintf(`{"name":"s%d","queue":"q%d","every":"1s","from":%q,"catch_up":"all"}`,
			i, i%3, first.Format(time.RFC3339)))
	}
	r.apply(lines)
	at := func(i int) time.Time { return first.Add(time.Duration(i) * time.Second) }
	var lookers []*running
	for i := range processes {
		lookers = append(lookers, r.looker(i, 0))
	}
	for i := range ticks {
		if i%10 == 0 {
			r.wantNextAfter(at(i))
		}
		if i == ticks/2 {
			stop(lookers[:processes/2])
			for i := range processes / 2 {
				lookers[i] = r.looker(i, 0)
			}
		}
	}
	r.wantNextAfter(at(ticks - 1))
	stop(lookers)
	seen, jobs := make(map[string]int), 0
	by := make(map[string]int)
	for _, e := range r.history(db) {
		switch b := e.Body.(type) {
		case *event.Enqueued:
			if key := b.Schedule + " " + b.Tick.Format(time.RFC3339); b.Tick.Before(at(ticks)) {
				seen[key]++
				jobs++
				by[e.Actor]++
			}
		case *event.ScheduleSkipped:
			if b.From.Before(at(ticks)) {
				t.Errorf("skipped: %+v", b)
			}
		}
	}
	if jobs != many*ticks || len(seen) != jobs {
		t.Errorf("%d jobs of %d ticks, want %d of as many", jobs, len(seen), many*ticks)
	}
	for i := range many {
		for k := range ticks {
			if key := fmt.Sprintf("s%d %s", i, at(k).Format(time.RFC3339)); seen[key] != 1 {
				t.Errorf("%s has %d jobs", key, seen[key])
			}
		}
	}
	t.Logf("%d jobs: %v", jobs, by)
}

// TestScheduleAfterAllWereDown kills all processes, one of them within a transaction, and starts others after
// some ticks. What comes of these ticks is what each schedule says.
func TestScheduleAfterAllWereDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(0, invoke("init"))
	each, processes := ledgertest.Size(2, 4, 60), ledgertest.Size(2, 2, 8)
	first := time.Now().UTC().Truncate(time.Second).Add(time.Hour)
	policies := map[string]struct{ spec, want string }{ // hours after the first tick
		"last":   {`"catch_up":"last","overlap":"allow"`, "0; 1-5 missed; 6"},
		"all":    {`"catch_up":"all"`, "0; 1; 2; 3; 4; 5; 6"},
		"none":   {`"catch_up":"none"`, "0; 1-6 late"},
		"within": {`"catch_up":"all","within":"150m"`, "0; 1-3 too_old; 4; 5; 6"},
		"old":    {`"catch_up":"last","within":"10m"`, "0; 1-6 too_old"},
		"skip": {`"catch_up":"all","overlap":"skip"`,
			"0; 1-1 overlap; 2-2 overlap; 3-3 overlap; 4-4 overlap; 5-5 overlap; 6-6 overlap"},
		"wait": {`"catch_up":"all","overlap":"wait"`,
			"0; 1; 2-2 overlap; 3-3 overlap; 4-4 overlap; 5-5 overlap; 6-6 overlap"},
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		for i := range each {
			lines = append(lines, fmt.Sprintf(`{"name":"%s.%d","queue":"%s","every":"1h","from":%q,%s}`, name, i, name,
				first.Format(time.RFC3339), policies[name].spec))
		}
	}
	r.apply(lines)
	lookAt := func(clock time.Duration) (lookers []*running) {
		for i := range processes {
			lookers = append(lookers, r.looker(i, clock))
		}
		return lookers
	}
	lookers := lookAt(time.Hour + 30*time.Second)
	r.wantNextAfter(first)
	stop(lookers)
	down := 7*time.Hour + 20*time.Minute
	if got := r.do(invoke("sweep").ahead(down).dyingAt(fmt.Sprint("ticked:", 3*each))); !got.killed {
		t.Fatalf("it was not killed: %+v", got)
	}
	lookers = lookAt(down)
	r.wantNextAfter(first.Add(6 * time.Hour))
	stop(lookers)
	got := make(map[string][]string)
	hour := func(tick time.Time) int { return int(tick.Sub(first).Hours()) }
	for _, e := range r.history(db) {
		switch b := e.Body.(type) {
		case *event.Enqueued:
			got[b.Schedule] = append(got[b.Schedule], fmt.Sprint(hour(b.Tick)))
		case *event.ScheduleSkipped:
			got[b.Name] = append(got[b.Name], fmt.Sprintf("%d-%d %s", hour(b.From), hour(b.To), b.Why))
		}
	}
	for name, p := range policies {
		for i := range each {
			s := fmt.Sprintf("%s.%d", name, i)
			if is := strings.Join(got[s], "; "); is != p.want {
				t.Errorf("%s: got  %s\nwant %s", s, is, p.want)
			}
		}
	}
}
