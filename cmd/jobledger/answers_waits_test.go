package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger/event"
)

// How long a job waited is the same in the report, the series, the metrics and the page of its queue: from
// the moment at which it was ready. What it depended on, another priority and another payload do not change
// that.
func TestAnswersOfWaits(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	waits := map[string]time.Duration{"dependent": 5 * time.Millisecond, "priority": 7 * time.Second,
		"replaced": 6 * time.Second}
	first := s.enqueue(commands.Enqueue{Queue: "first"})
	s.enqueue(commands.Enqueue{Queue: "dependent", RunAt: s.Now.Add(8 * time.Second),
		After: []commands.Dependency{{Job: first.ID}}})
	held := s.claim("w1", "first")
	s.wait(500 * time.Millisecond)
	s.do("worker:w1", held, commands.Succeed{Token: held.Token})
	ready := s.Now
	s.wait(7500*time.Millisecond + 5*time.Millisecond)
	s.claim("w1", "dependent")
	s.wait(time.Second)
	job := s.enqueue(commands.Enqueue{Queue: "priority"})
	s.wait(5 * time.Second)
	s.do("cli:ada@build7", job, commands.Reschedule{Priority: new(5), Reason: "a bad night"})
	s.wait(2 * time.Second)
	s.claim("w1", "priority")
	replaced := commands.Enqueue{Queue: "replaced", Key: "k", UniqueWhile: event.WhileQueued}
	s.enqueue(replaced)
	s.wait(5 * time.Second)
	replaced.Payload, replaced.OnDuplicate = []byte("another"), commands.ReplaceDuplicate
	s.enqueue(replaced)
	s.wait(time.Second)
	s.claim("w1", "replaced")
	s.wait(time.Second)

	_, get := serveOn(t, s.Store, func() time.Time { return s.Now })
	_, _, metrics := get("/metrics")
	_, reported, _ := s.run(0, "report", "waits", "--json")
	for queue, want := range waits {
		var row struct{ P50, P99, Max float64 }
		for line := range strings.Lines(reported) {
			if strings.Contains(line, fmt.Sprintf(`"queue":%q`, queue)) {
				check(t, json.Unmarshal([]byte(line), &row))
			}
		}
		var series struct {
			WaitP50 []float64 `json:"wait_p50"`
		}
		_, _, text := get("/api/v1/series?queue=" + queue + "&from=" + ready.Add(-time.Minute).Format(time.RFC3339))
		check(t, json.Unmarshal([]byte(text), &series))
		sum := math.NaN()
		for line := range strings.Lines(metrics) {
			if rest, is := strings.CutPrefix(line, `jobledger_job_wait_seconds_sum{queue="`+queue+`"} `); is {
				_, err := fmt.Sscan(rest, &sum)
				check(t, err)
			}
		}
		seconds := want.Seconds()
		if row.P50 != seconds || row.P99 != seconds || row.Max != seconds ||
			len(series.WaitP50) == 0 || slices.Max(series.WaitP50) != seconds || math.Abs(sum-seconds) > 1e-9 {
			t.Errorf("%s waited %s; the report says %+v, the series %v, the metrics %v", queue, want, row,
				series.WaitP50, sum)
		}
		_, _, page := get("/queues/" + queue)
		shown := ""
		for _, f := range figuresOf(t, page) {
			if f.where == "waits" && f.column == "P50" {
				shown = f.text
			}
		}
		if shown != fmt.Sprintf("%.1fs", seconds) {
			t.Errorf("the page of %s says %q, want %s", queue, shown, want)
		}
	}
}
