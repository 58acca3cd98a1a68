package verdict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/follow"
	"jobledger/projection/status"
)

// simulated is a queue of a night: what comes, how long it takes, and what fails. It advances second by
// second, and feeds the rules with the same transitions as a ledger.
type simulated struct {
	name     string
	rate     float64 // jobs a minute
	slots    int
	takes    int     // seconds
	failing  float64 // share of the attempts
	attempts int     // after which a job fails for good
	every    int     // seconds between two batches; 0: jobs come one by one
	batch    int

	waiting []job
	held    []job
	n       int64
	version string
}

type job struct {
	n       int64
	ready   int64 // in seconds
	ends    int64
	failed  int
	spoiled bool
}

type night struct {
	begin  time.Time
	dice   *rand.Rand
	queues []*simulated
	recent *Recent
}

func newNight(seed uint64) *night {
	n := &night{begin: time.Date(2026, 11, 6, 18, 0, 0, 0, time.UTC), dice: rand.New(rand.NewPCG(seed, 9))}
	n.recent = &Recent{Since: n.begin}
	for _, q := range []simulated{{name: "mail", rate: 20, slots: 8, takes: 9, failing: 0.05, attempts: 3},
		{name: "sms", rate: 4, slots: 4, takes: 7, failing: 0.04, attempts: 3},
		{name: "api", rate: 13, slots: 6, takes: 8, failing: 0.02, attempts: 5},
		{name: "render", rate: 3, slots: 12, takes: 180, failing: 0.06, attempts: 5},
		{name: "address", rate: 2, slots: 6, takes: 20, failing: 0.02, attempts: 1},
		{name: "batch", slots: 4, takes: 5, every: 7200, batch: 900, failing: 0.01, attempts: 3},
		{name: "seldom", slots: 1, takes: 60, every: 10800, batch: 1, attempts: 3}} {
		q.version = "v41"
		n.queues = append(n.queues, &q)
	}
	return n
}

func (n *night) queue(name string) *simulated {
	return n.queues[slices.IndexFunc(n.queues, func(q *simulated) bool { return q.name == name })]
}

// step is a second of q.
func (q *simulated) step(n *night, second int64) {
	add := func(kind event.Kind, from, to event.State, j job, wait int64) {
		t := follow.Transition{N: j.n, Kind: kind, At: event.Micros(n.begin) + second*1_000_000, From: from, To: to,
			Queue: q.name, Wait: wait}
		n.recent.Add(&t, q.version)
	}
	come := 0
	if q.every == 0 && n.dice.Float64() < q.rate*(1+0.4*float64(second/600%3)-0.4)/60 {
		come = 1
	} else if q.every > 0 && second%int64(q.every) == 60 {
		come = q.batch
	}
	for range come {
		q.n++
		j := job{n: q.n, ready: second}
		q.waiting = append(q.waiting, j)
		add(event.KindEnqueued, 0, event.Queued, j, -1)
	}
	var keep []job
	for _, j := range q.held {
		if second < j.ends {
			keep = append(keep, j)
			continue
		}
		if !j.spoiled && n.dice.Float64() >= q.failing {
			add(event.KindSucceeded, event.ClaimedState, event.SucceededState, j, -1)
			continue
		}
		to := event.Queued
		if j.failed++; j.failed >= q.attempts {
			to = event.FailedState
		} else {
			q.waiting = append(q.waiting, job{n: j.n, ready: second + int64(2)<<j.failed, failed: j.failed})
		}
		add(event.KindFailed, event.ClaimedState, to, j, -1)
	}
	q.held = keep
	for i := 0; i < len(q.waiting) && len(q.held) < q.slots; {
		j := q.waiting[i]
		if j.ready > second {
			i++
			continue
		}
		add(event.KindClaimed, event.Queued, event.ClaimedState, j, (second-j.ready)*1_000_000)
		j.ends = second + int64(q.takes/2+n.dice.IntN(q.takes))
		q.held = append(q.held, j)
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// judge is what is listed at a second.
func (n *night) judge(second int64) (lines []string) {
	f := Facts{At: n.begin.Add(time.Duration(second) * time.Second), Recent: n.recent}
	for _, q := range n.queues {
		s := status.Queue{Queue: projection.Queue{Name: q.name},
			Jobs: map[event.State]int64{event.ClaimedState: int64(len(q.held))}}
		for _, j := range q.waiting {
			if j.ready <= second {
				s.Ready++
				at := n.begin.Add(time.Duration(j.ready) * time.Second)
				if s.OldestReady.IsZero() || at.Before(s.OldestReady) {
					s.OldestReady = at
				}
			}
		}
		f.Queues = append(f.Queues, s)
	}
	for _, p := range f.Judge() {
		if p.Level == Note {
			continue
		}
		for _, code := range append(p.Also, p.Code) {
			lines = append(lines, fmt.Sprintf("%s %s", code, p.Queue))
		}
	}
	return lines
}

// In nights in which nothing is planted nothing is listed: with peaks, batches, a queue that is seldom used,
// and the failures that are normal.
func TestCalmNightsHaveNoLine(t *testing.T) {
	for seed := range ledgertest.Size(uint64(3), 8, 60) {
		n := newNight(seed)
		last := ""
		for second := range int64(8 * 3600) {
			for _, q := range n.queues {
				q.step(n, second)
			}
			if second%30 == 0 {
				if text := strings.Join(n.judge(second), ", "); text != last {
					if last = text; text != "" {
						t.Errorf("night %d, %s: %s", seed, time.Duration(second)*time.Second, text)
					}
				}
			}
		}
	}
}

// What is planted at random is named within a minute of its first sign, and within a quarter of an hour after
// its end nothing is listed but the jobs that failed for good.
func TestIncidentsAreNamed(t *testing.T) {
	type incident struct {
		code   Code
		queue  string
		minute int64 // within which of its beginning it is named
		begin  func(*simulated)
		end    func(*simulated)
	}
	fail := func(share float64) func(*simulated) { return func(q *simulated) { q.failing = share } }
	slots := func(n int) func(*simulated) { return func(q *simulated) { q.slots = n } }
	deploy := func(share float64) func(*simulated) {
		return func(q *simulated) { q.failing, q.version = share, q.version+"+" }
	}
	for seed := range ledgertest.Size(uint64(4), 8, 60) {
		n := newNight(100 + seed)
		var what []incident
		for _, i := range []incident{
			{Failing, "mail", 1, fail(0.9), fail(0.05)},
			{Failing, "api", 1, fail(0.9), fail(0.02)},
			{Failing, "address", 6, fail(1), fail(0.02)},
			{Failing, "sms", 3, fail(0.9), fail(0.04)},
			{Version, "api", 15, deploy(0.15), deploy(0.02)},
			{Behind, "mail", 3, slots(0), slots(16)}, // after a minute of waiting: then no worker holds any
		} {
			if n.dice.IntN(2) == 0 {
				what = append(what, i)
			}
		}
		hour := int64(3600)
		for k, i := range what {
			begin, q := (1+2*int64(k))*hour+600+n.dice.Int64N(1200), n.queue(i.queue)
			named, gone := int64(0), int64(0)
			for second := (1 + 2*int64(k)) * hour; second < begin+hour/2+16*60; second++ {
				if k == 0 && second == hour { // the first hours are calm
					for s := range second {
						for _, q := range n.queues {
							q.step(n, s)
						}
					}
				}
				switch second {
				case begin:
					i.begin(q)
				case begin + hour/2:
					i.end(q)
				}
				for _, q := range n.queues {
					q.step(n, second)
				}
				if second%10 != 0 {
					continue
				}
				lines := n.judge(second)
				is := slices.Contains(lines, fmt.Sprintf("%s %s", i.code, i.queue))
				switch {
				case is && second < begin:
					t.Errorf("night %d: %s of %s before its beginning", seed, i.code, i.queue)
				case is && named == 0:
					named = second
				case named > 0 && !is && second < begin+hour/2-300 && second > named+300:
					t.Errorf("night %d: %s of %s is missing after %d s", seed, i.code, i.queue, second-begin)
				}
				if is {
					gone = second
				}
			}
			if named == 0 || named > begin+60*i.minute+int64(q.takes) {
				t.Errorf("night %d: %s of %s is named after %d s", seed, i.code, i.queue, named-begin)
			}
			if gone > begin+hour/2+15*60 {
				t.Errorf("night %d: %s of %s is listed %d s after its end", seed, i.code, i.queue, gone-begin-hour/2)
			}
			for second := begin + hour/2 + 16*60; second < (3+2*int64(k))*hour; second++ {
				for _, q := range n.queues {
					q.step(n, second)
				}
			}
		}
	}
}

// One job that is retried again and again is not a queue that fails.
func TestNotFailing(t *testing.T) {
	n := newNight(7)
	mail := n.queue("address")
	mail.attempts, mail.failing = 8, 0
	for second := range int64(2 * 3600) {
		for _, q := range n.queues {
			q.step(n, second)
		}
		if second%600 == 0 && second > 0 && len(mail.held) > 0 {
			mail.held[0].spoiled = true
		}
		if lines := n.judge(second); second%10 == 0 && slices.Contains(lines, "D41 address") {
			t.Errorf("after %d s: %s", second, lines)
		}
	}
}
