package commands_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	limits "jobledger/projection/limit"
)

func perSecond(n, burst int) limits.Spec {
	return limits.Spec{Rate: limits.Rate{N: n, Per: time.Second, Burst: burst}}
}

func TestRateSpreadsStarts(t *testing.T) {
	q := newQueue(t)
	for range 12 {
		q.enqueue(commands.Enqueue{})
	}
	q.setLimit(perSecond(2, 0))
	first := q.claim("a", limit(5))
	if len(first) != 1 {
		t.Fatalf("claimed %d jobs at once, want 1", len(first))
	}
	q.succeed(first[0]) // the end of a job gives no start back
	for _, step := range []struct {
		wait time.Duration
		want int
	}{{0, 0}, {499 * time.Millisecond, 0}, {time.Millisecond, 1}, {10 * time.Second, 1}, {0, 0}} {
		q.Now = q.Now.Add(step.wait)
		if got := q.claim("b", limit(5)); len(got) != step.want {
			t.Fatalf("claimed %d jobs after %v more, want %d", len(got), step.wait, step.want)
		}
	}
	r := commands.ClaimRequest{Queues: []string{"mail"}, Worker: event.Worker{Name: "c", Boot: "c"}}
	ready, next, err := q.Ready(t.Context(), r)
	if want := q.Now.Add(500 * time.Millisecond); err != nil || ready || !next.Equal(want) {
		t.Fatalf("ready %t at %s, %v; want nothing until %s", ready, next, err, want)
	}
	q.Now = next
	if ready, _, err = q.Ready(t.Context(), r); err != nil || !ready {
		t.Fatalf("ready %t, %v at the time of the next start", ready, err)
	}
	q.Verify()
}

func TestRateBurstAfterPause(t *testing.T) {
	q := newQueue(t)
	for range 12 {
		q.enqueue(commands.Enqueue{})
	}
	q.setLimit(perSecond(2, 3))
	for i, step := range []struct {
		wait time.Duration
		want int
	}{{0, 3}, {499 * time.Millisecond, 0}, {time.Millisecond, 1}, {time.Second, 2}, {time.Hour, 3}} {
		q.Now = q.Now.Add(step.wait)
		if got := q.claim("a", limit(5)); len(got) != step.want {
			t.Fatalf("step %d: claimed %d jobs, want %d", i, len(got), step.want)
		}
	}
	q.Verify()
}

// TestRateChangeBegins checks that another rate begins at once, that the same one goes on counting when only
// the other limits change, and that a queue without a rate is free again.
func TestRateChangeBegins(t *testing.T) {
	q := newQueue(t)
	for range 12 {
		q.enqueue(commands.Enqueue{})
	}
	spec := limits.Spec{Rate: limits.Rate{N: 1, Per: time.Hour}}
	for i, step := range []struct {
		to   limits.Spec
		want int
	}{{spec, 1}, {limits.Spec{Running: 4, Rate: spec.Rate}, 0}, {perSecond(1, 0), 1}, {spec, 1},
		{limits.Spec{}, 5}} {
		q.setLimit(step.to)
		if got := q.claim("a", limit(5)); len(got) != step.want {
			t.Fatalf("step %d: claimed %d jobs under %+v, want %d", i, len(got), step.to, step.want)
		}
	}
	q.Verify()
}

// TestRateCountsRetriesAndOtherQueuesApart checks that every claim counts as a start, even that of a job that
// was given back, and only for the queue of the job.
func TestRateCountsRetriesAndOtherQueuesApart(t *testing.T) {
	q := newQueue(t)
	q.enqueue(commands.Enqueue{})
	q.enqueue(commands.Enqueue{Queue: "other"})
	q.enqueue(commands.Enqueue{Queue: "other"})
	q.setLimit(perSecond(1, 0))
	both := func(r *commands.ClaimRequest) { r.Queues = []string{"mail", "other"} }
	got := q.claim("a", limit(9), both)
	if len(got) != 3 {
		t.Fatalf("claimed %d jobs, want one of mail and both of other", len(got))
	}
	for _, j := range got {
		q.apply(j, commands.Release{Token: j.Token})
	}
	if got = q.claim("a", limit(9), both); len(got) != 2 || got[0].Queue != "other" || got[1].Queue != "other" {
		t.Fatalf("claimed %d jobs, want both of other again and none of mail", len(got))
	}
	q.Verify()
}

// TestRateHoldsInEveryWindow lets two stores, whose clocks differ and jump, claim, end and change the rate at
// random, and then looks at all starts under each rate.
func TestRateHoldsInEveryWindow(t *testing.T) {
	q := newQueue(t)
	second := commandstest.On(t, ledgertest.OpenAt(t, q.Store.DSN()))
	second.Now = q.Now
	queues := []*queue{q, {second}}
	random := rand.New(rand.NewPCG(7, uint64(ledgertest.Size(1, 2, 3)))) // #nosec G404 -- a test
	for range ledgertest.Size(120, 150, 800) {
		u := queues[random.IntN(len(queues))]
		switch random.IntN(10) {
		case 0, 1:
			e := commands.Enqueue{Queue: "mail", Priority: random.IntN(2)}
			if random.IntN(2) == 0 {
				e.Group = fmt.Sprint("g", random.IntN(3))
			}
			u.enqueue(e)
			u.enqueue(e)
		case 2:
			if random.IntN(3) == 0 {
				u.setLimit(limits.Spec{Running: random.IntN(9), PerGroup: random.IntN(3),
					Rate: limits.Rate{N: 1 + random.IntN(7), Per: time.Second, Burst: random.IntN(4)}})
			}
		case 3:
			u.Now = u.Now.Add(time.Duration(random.Int64N(int64(5*time.Second))) - 2*time.Second)
		case 4, 5:
			_, next, err := u.Ready(t.Context(), commands.ClaimRequest{Queues: []string{"mail"},
				Worker: event.Worker{Name: "w", Boot: "w"}})
			if err != nil {
				t.Fatal(err)
			}
			if next.After(u.Now) { // as an idle worker waits
				u.Now = next
			}
		default:
			for _, j := range u.claim("w", limit(1+random.IntN(4))) {
				u.apply(j, commands.Succeed{Token: j.Token})
			}
		}
	}
	wantWithinRates(t, q.Store)
	q.Verify()
	second.Verify()
}

// wantWithinRates compares every two starts under one rate, without any code of the limits: of those within
// less than k intervals there are at most k and the burst.
func wantWithinRates(t testing.TB, s *ledger.Store) {
	t.Helper()
	var rate event.QueueLimited
	var starts []time.Time
	waited := 0
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			if b, ok := e.Body.(*event.QueueLimited); ok {
				if b.Rate != rate.Rate || b.RatePer != rate.RatePer || b.Burst != rate.Burst {
					starts = nil
				}
				rate = *b
			}
			if e.Kind() != event.KindClaimed || rate.Rate == 0 {
				continue
			}
			starts = append(starts, e.At)
			burst := max(rate.Burst, 1)
			for i := range max(0, len(starts)-burst) {
				spaces := len(starts) - burst - i // intervals that must lie between the start i and this one
				least := time.Duration(spaces) * rate.RatePer / time.Duration(rate.Rate)
				if d := e.At.Sub(starts[i]); d < least {
					t.Errorf("event %d: %d starts within %v, of %d in %v with a burst of %d", e.Pos, len(starts)-i, d,
						rate.Rate, rate.RatePer, burst)
				} else if d < least+time.Millisecond {
					waited++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if waited == 0 {
		t.Error("no start ever waited for the rate, so nothing was tried")
	}
}
