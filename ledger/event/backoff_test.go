package event_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"jobledger/ledger/event"
)

func TestBackoffWait(t *testing.T) {
	for _, c := range []struct {
		backoff event.Backoff
		n       int
		want    time.Duration
	}{
		{event.Backoff{}, 1, time.Second},
		{event.Backoff{}, 12, 2048 * time.Second},
		{event.Backoff{}, 13, time.Hour},
		{event.Backoff{}, 1_000_000, time.Hour},
		{event.Backoff{Min: 10 * time.Second, Max: time.Minute, Factor: 3}, 2, 30 * time.Second},
		{event.Backoff{Min: 10 * time.Second, Max: time.Minute, Factor: 3}, 3, time.Minute},
		{event.Backoff{Min: time.Second, Max: time.Hour, Factor: 1.5}, 3, 2250 * time.Millisecond},
		{event.Backoff{Min: time.Second, Max: time.Hour, Factor: 1}, 1 << 60, time.Second},
		{event.Backoff{Min: event.MaxBackoff, Max: event.MaxBackoff, Factor: 100}, 9, event.MaxBackoff},
		{event.Backoff{Min: event.MaxBackoff - 1000, Max: event.MaxBackoff, Factor: 100}, 9, event.MaxBackoff},
	} {
		if got := c.backoff.Wait(c.n); got != c.want {
			t.Errorf("%+v after failure %d: %s, want %s", c.backoff, c.n, got, c.want)
		}
	}
}

// TestBackoffWaitGrowsWithinItsBounds: whatever the policy, no wait is shorter than the one before, and all
// are within min and max.
func TestBackoffWaitGrowsWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		least := rapid.Int64Range(event.MinBackoff.Microseconds(), event.MaxBackoff.Microseconds()).Draw(rt, "min")
		most := rapid.Int64Range(least, event.MaxBackoff.Microseconds()).Draw(rt, "max")
		b := event.Backoff{Min: time.Duration(least) * time.Microsecond,
			Max:    time.Duration(most) * time.Microsecond,
			Factor: float64(rapid.IntRange(1000, 100_000).Draw(rt, "factor")) / 1000}
		if !b.Valid() {
			rt.Fatalf("%+v is not valid", b)
		}
		for n, before := 1, b.Min; n < 40; n++ {
			wait := b.Wait(n)
			if wait < before || wait > b.Max || n > 1 && b.Factor >= 2 && wait < min(2*before, b.Max) {
				rt.Fatalf("%+v waits for %s after failure %d, and for %s before", b, wait, n, before)
			}
			before = wait
		}
	})
}

func TestBackoffValid(t *testing.T) {
	good := event.Backoff{Min: time.Second, Max: time.Hour, Factor: 1.125}
	if !good.Valid() || !(event.Backoff{}).Valid() || !event.DefaultBackoff.Valid() {
		t.Error("a good one is refused")
	}
	for name, change := range map[string]func(*event.Backoff){
		"no min":              func(b *event.Backoff) { b.Min = 0 },
		"short min":           func(b *event.Backoff) { b.Min = time.Microsecond },
		"nanoseconds":         func(b *event.Backoff) { b.Min = time.Second + 1 },
		"max below min":       func(b *event.Backoff) { b.Max = time.Millisecond },
		"long max":            func(b *event.Backoff) { b.Max = event.MaxBackoff + time.Second },
		"no factor":           func(b *event.Backoff) { b.Factor = 0 },
		"small factor":        func(b *event.Backoff) { b.Factor = 0.5 },
		"great factor":        func(b *event.Backoff) { b.Factor = 101 },
		"fine factor":         func(b *event.Backoff) { b.Factor = 1.0001 },
		"factor not a number": func(b *event.Backoff) { b.Factor = math.NaN() },
	} {
		b := good
		if change(&b); b.Valid() {
			t.Errorf("%s: %+v is accepted", name, b)
		}
	}
}
