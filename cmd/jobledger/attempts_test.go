package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/cmd/jobledger/internal/print"
	"jobledger/cmd/jobledger/internal/words"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection/follow"
)

// walkedHistory is a history as a scan of all of its events shows it: every claim, in the order of their
// beginning.
type walkedHistory struct {
	events []event.Event
	claims []*follow.Claim
	last   map[int64]int64 // by the pos of a claim, the pos of the last refused write under it
}

func walkHistory(t testing.TB, s *scenario) walkedHistory {
	t.Helper()
	h := walkedHistory{last: make(map[int64]int64)}
	var claims follow.Claims
	queues := follow.QueuesOf{Find: func(n int64) (string,
		error) {
		return h.events[n-1].Body.(*event.Enqueued).Queue, nil
	}}
	check(t, s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			h.events = append(h.events, e)
			queue, err := queues.Add(e)
			if err != nil {
				return err
			}
			c := claims.Add(e, queue)
			switch {
			case e.Kind() == event.KindClaimed:
				h.claims = append(h.claims, c)
			case e.Kind() == event.KindRefused && e.Attempt > 0:
				i := slices.IndexFunc(h.claims, func(c *follow.Claim) bool {
					return c.N == e.N &&
						c.Attempt == e.Attempt
				})
				h.last[h.claims[i].Pos] = e.Pos
			}
		}
		return nil
	}))
	return h
}

// overlaps reports whether another owner also worked during c: until its last refused write, or its end.
func (h walkedHistory) overlaps(c *follow.Claim) bool {
	for _, o := range h.claims {
		early, late := min(o.Pos, c.Pos), max(o.Pos, c.Pos)
		if o.N == c.N && o != c && h.last[early] > late {
			return true
		}
	}
	return false
}

// live reports whether c was live at some time from event from to event to.
func (h walkedHistory) live(c *follow.Claim, from, to int64) bool {
	return c.Pos <= to && (c.End == nil || c.End.Pos >= from)
}

func TestAttemptsMatchClaimEvents(t *testing.T) {
	t.Parallel()
	steps, questions := ledgertest.Size(100, 200, 300), ledgertest.Size(40, 60, 80)
	for seed := range ledgertest.Size[uint64](1, 1, 2) {
		s := newScenario(t)
		random := rand.New(rand.NewPCG(seed, 11))
		jobs, _ := s.randomCommands(random, steps)
		h := walkHistory(t, s)
		tail := int64(len(h.events))
		for range questions {
			typed := []string{"attempts", "--json"}
			from, to, worker, outcome, queue, overlap, job := int64(1), tail, "", "", "", false, event.JobID("")
			if random.IntN(2) == 0 {
				from = 1 + random.Int64N(tail)
				typed = append(typed, "--from", fmt.Sprintf("pos:%d", from))
			}
			if random.IntN(2) == 0 {
				to = from + random.Int64N(tail-from+1)
				typed = append(typed, "--to", fmt.Sprintf("pos:%d", to))
			}
			if random.IntN(2) == 0 {
				worker = fmt.Sprint("w", random.IntN(3))
				typed = append(typed, "--worker", worker)
			}
			if random.IntN(3) == 0 {
				outcomes := []string{"succeeded", "failed", "released", "reclaimed", "cancelled", "open"}
				outcome = outcomes[random.IntN(len(outcomes))]
				typed = append(typed, "--outcome", outcome)
			}
			if random.IntN(4) == 0 {
				queue = "web"
				typed = append(typed, "--queue", queue)
			}
			if random.IntN(4) == 0 {
				overlap = true
				typed = append(typed, "--overlap")
			}
			if random.IntN(4) == 0 {
				job = jobs[random.IntN(len(jobs))]
				typed = append(typed, "--job", string(job))
			}
			var want []string
			for _, c := range h.claims {
				how := "open"
				if c.End != nil {
					how = c.End.Kind().String()
				}
				if h.live(c, from, to) && (worker == "" || c.Worker.Name == worker) &&
					(outcome == "" || how == outcome) &&
					(queue == "" || c.Queue == queue) && (!overlap || h.overlaps(c)) && (job == "" || c.Job == job) {
					want = append(want, fmt.Sprint(c.Job, c.Attempt, c.Queue, c.Worker.Boot, words.JSONTime(c.ClaimedAt),
						shownOrNone(words.TimeOrNull(c.LastHeartbeat)), how))
				}
			}
			_, stdout, _ := s.run(0, typed...)
			var got []string
			for line := range strings.Lines(stdout) {
				var a print.AttemptJSON
				check(t, json.Unmarshal([]byte(line), &a))
				how := "open"
				if a.Outcome != nil {
					how = *a.Outcome
				}
				got = append(got, fmt.Sprint(a.Job, a.Attempt, a.Queue, a.Boot, a.ClaimedAt, shownOrNone(a.LastHeartbeat),
					how))
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d: %s: got\n%s\nwant\n%s", seed, strings.Join(typed, " "), strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
		}
		owners(t, s, h, jobs, random)
	}
}

func shownOrNone(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// owners compares who held a job, at times between its events and exactly at them.
func owners(t *testing.T, s *scenario, h walkedHistory, jobs []event.JobID, random *rand.Rand) {
	t.Helper()
	for range 100 {
		id := jobs[random.IntN(len(jobs))]
		e := h.events[random.IntN(len(h.events))]
		at := e.At.Add(time.Duration(random.IntN(3)-1) * time.Microsecond)
		if now := h.events[len(h.events)-1].At; at.After(now) {
			at = now // what is yet to come is not a moment to ask about
		}
		want, wantCode := "", cli.ExitNothing
		for _, c := range h.claims {
			if c.Job == id && !c.ClaimedAt.After(at) && (c.End == nil || c.End.At.After(at)) {
				want, wantCode = fmt.Sprint(c.Worker.Boot, c.Attempt), cli.ExitOK
			}
		}
		code, stdout, stderr := s.run(0, "owner", string(id), "--at", at.Format(time.RFC3339Nano), "--json")
		var o print.OwnerJSON
		if err := json.Unmarshal([]byte(stdout), &o); err != nil {
			t.Fatalf("%v: %s%s", err, stdout, stderr)
		}
		got := ""
		if o.Boot != nil {
			got = fmt.Sprint(*o.Boot, *o.Attempt)
		}
		if got != want || code != wantCode {
			t.Fatalf("owner of %s at %s: got %q, exit %d; want %q", id, at, got, code, want)
		}
	}
}
