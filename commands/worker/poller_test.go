package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
)

// TestPoller feeds events to a poller and checks, after each, what the worker would do next.
func TestPoller(t *testing.T) {
	type step struct {
		event string // see apply
		want  string // see decision
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"begins with a read", []step{{"", "read"}}},
		{"rests while nothing is ready", []step{
			{"none", "rest 9s"}, {"+8s", "rest 1s"}, {"+1s", "read"},
		}},
		{"reads when the next job is due", []step{
			{"due 3s", "rest 3.0005s"}, {"+4s", "read"}, {"due 1h", "rest 9s"}, {"+9s", "read"}, {"due -1s", "read"},
		}},
		{"claims again as long as claims succeed", []step{
			{"ready", "read"}, {"claim 8 of 8", "read"}, {"ready", "read"}, {"claim 1 of 8", "read"},
			{"none", "rest 9s"},
		}},
		{"claims without a read when notified", []step{
			{"none", "rest 9s"}, {"notify", "claim"}, {"notify", "claim"}, {"claim 1 of 8", "read"},
			{"none", "rest 9s"},
		}},
		{"reads after a spurious notification, until a claim succeeds", []step{
			{"none", "rest 9s"}, {"notify", "claim"}, {"claim 0 of 8", "read"}, {"none", "rest 9s"},
			{"notify", "read"}, {"none", "rest 9s"}, {"notify", "read"}, {"ready", "read"},
			{"claim 1 of 8", "read"}, {"none", "rest 9s"}, {"notify", "claim"},
		}},
		{"yields to workers that claim first", []step{
			{"ready", "read"}, {"claim 0 of 1", "yield 1ms"}, {"+1ms", "read"},
			{"ready", "read"}, {"claim 0 of 1", "yield 1.5ms"}, {"notify", "yield 1.5ms"}, {"+2ms", "read"},
			{"none", "rest 9s"}, {"notify", "yield 1.5ms"}, {"+2ms", "read"},
			{"ready", "read"}, {"claim 1 of 1", "read"}, {"none", "rest 9s"}, {"notify", "yield 1ms"},
			{"+2ms", "read"}, {"ready", "read"}, {"claim 1 of 1", "read"}, {"none", "rest 9s"}, {"notify", "claim"},
		}},
		{"bounds how far it yields", append(slicesOf(20, step{"ready", "*"}, step{"claim 0 of 1", "*"}),
			step{"ready", "read"}, step{"claim 0 of 1", "yield 4.5ms"})},
		{"a notification does not prolong a rest", []step{
			{"ready", "read"}, {"claim 0 of 1", "yield 1ms"}, {"+600µs", "yield 400µs"}, {"notify", "yield 400µs"},
		}},
		{"a write without a claim says nothing about jobs", []step{
			{"none", "rest 9s"}, {"claim 0 of 0", "rest 9s"}, {"notify", "claim"}, {"claim 0 of 0", "read"},
		}},
		{"a claim that accompanies a write ends the rest", []step{
			{"none", "rest 9s"}, {"claim 0 of 3", "read"}, {"none", "rest 9s"}, {"claim 2 of 3", "read"},
		}},
		{"a failed claim is tried again", []step{
			{"none", "rest 9s"}, {"notify", "claim"}, {"claim failed", "claim"}, {"claim 1 of 1", "read"},
			{"ready", "read"}, {"claim failed", "read"},
		}},
		{"a failed read is tried again, and is not a sign of an empty queue", []step{
			{"none", "rest 9s"}, {"+9s", "read"}, {"read failed", "read"},
		}},
		{"rests when only damaged jobs are ready", []step{
			{"ready", "read"}, {"damaged", "rest 8s"}, {"notify", "claim"}, {"damaged", "rest 8s"}, {"+8s", "read"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Now()
			half := func(limit time.Duration) time.Duration { return limit / 2 }
			p := poller{interval: 8 * time.Second, random: half}
			var past []string
			for _, s := range tt.steps {
				past = append(past, s.event)
				now = apply(t, &p, now, s.event)
				if got := decision(&p, now); got != s.want && s.want != "*" {
					t.Errorf("after %s: got %s, want %s", strings.Join(past, ", "), got, s.want)
				}
			}
		})
	}
}

func slicesOf[T any](n int, items ...T) (all []T) {
	for range n {
		all = append(all, items...)
	}
	return all
}

// apply feeds one event to p, and returns the time after it.
func apply(t *testing.T, p *poller, now time.Time, event string) time.Time {
	t.Helper()
	word, rest, _ := strings.Cut(event, " ")
	var n, limit int
	switch {
	case event == "" || event == "claim failed":
	case strings.HasPrefix(event, "+"):
		return now.Add(duration(t, event[1:]))
	case event == "notify":
		p.notified(now)
	case event == "ready":
		p.sawReady()
	case event == "none":
		p.sawNothing(now)
	case word == "due":
		p.sawDue(now, duration(t, rest))
	case event == "read failed":
		p.readFailed()
	case event == "damaged":
		p.sawOnlyDamaged(now)
	default:
		if _, err := fmt.Sscanf(event, "claim %d of %d", &n, &limit); err != nil {
			t.Fatalf("%q: %v", event, err)
		}
		p.claimed(now, limit, n)
	}
	return now
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// decision returns what p decides next, and for how long it rests or yields.
func decision(p *poller, now time.Time) string {
	switch p.next(now) {
	case pollClaim:
		return "claim"
	case pollRead:
		return "read"
	}
	word := "yield "
	if p.idle() { // a worker that drains ends
		word = "rest "
	}
	return word + p.wait(now).String()
}

// TestNextWaitWithoutPresence: a worker that does not record its presence sleeps until something happens. It
// used to wait for a record that was always due, and kept a processor busy while its command ran.
func TestNextWaitWithoutPresence(t *testing.T) {
	for name, l := range map[string]*loop{
		"it finishes one job":    {Worker: &Worker{}, stopped: true, unannounced: true},
		"the ledger is replaced": {Worker: &Worker{}, stopped: true, fatal: ledger.ErrReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := l.nextWait(), commands.PresentEvery; got != want {
				t.Errorf("it waits %v, want %v", got, want)
			}
			in := time.Now().Add(time.Minute)
			l.active = map[*task]bool{{nextBeat: in.Add(-55 * time.Second)}: true, {nextBeat: in}: true}
			if got := l.nextWait(); got <= 0 || got > 5*time.Second {
				t.Errorf("it waits %v for a heartbeat in 5s", got)
			}
		})
	}
}
