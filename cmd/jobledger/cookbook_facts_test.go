package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// deed is an event as it is exported.
type deed struct {
	Pos, Seq                        int
	Job, Kind, Actor, Worker, Token string
	Attempt                         int
	At                              time.Time
	From                            string `json:"from_state"`
	To                              string `json:"to_state"`
	Data                            struct {
		Queue, Key, Boot, Host, Version, Reason, Command string
		PID                                              int
		Tags                                             map[string]string
		Code                                             string    `json:"error_code"`
		Offered                                          string    `json:"offered_sha256"`
		LeaseUntil                                       time.Time `json:"lease_until"`
		LastHeartbeat                                    time.Time `json:"last_heartbeat"`
		RetryAt                                          time.Time `json:"retry_at"`
		RunAt                                            time.Time `json:"run_at"`
	}
}

// hold is one claim.
type hold struct {
	job, worker, boot, host, outcome string
	attempt                          int
	from, beat, end                  time.Time // end is zero while it is live
}

// night is the content of the exported lines, read without any code of the program.
type night struct {
	deeds  []deed
	holds  []*hold
	queue  map[string]string // by job
	byJob  map[string][]deed // only those that change its state
	silent []string          // boots with a start and no stop
}

func readNight(t *testing.T, file string) *night {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := &night{queue: make(map[string]string), byJob: make(map[string][]deed)}
	held := make(map[string]*hold)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var d deed
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		n.deeds = append(n.deeds, d)
		if d.Seq > 0 {
			n.byJob[d.Job] = append(n.byJob[d.Job], d)
		}
		switch d.Kind {
		case "enqueued":
			n.queue[d.Job] = d.Data.Queue
		case "claimed":
			held[d.Job] = &hold{job: d.Job, worker: d.Worker, boot: d.Data.Boot, host: d.Data.Host, attempt: d.Attempt,
				from: d.At}
			n.holds = append(n.holds, held[d.Job])
		case "heartbeat":
			held[d.Job].beat = d.At
		case "succeeded", "failed", "released", "reclaimed", "cancelled":
			if h := held[d.Job]; h != nil && d.Attempt > 0 {
				h.end, h.outcome = d.At, d.Kind
				delete(held, d.Job)
			}
		case "worker_started":
			n.silent = append(n.silent, d.Data.Boot)
		case "worker_stopped":
			n.silent = slices.DeleteFunc(n.silent, func(boot string) bool { return boot == d.Data.Boot })
		}
	}
	if err := lines.Err(); err != nil || len(n.deeds) < 1000 {
		t.Fatalf("%d lines, %v", len(n.deeds), err)
	}
	return n
}

// which returns the events that match.
func (n *night) which(fits func(deed) bool) (found []deed) {
	for _, d := range n.deeds {
		if fits(d) {
			found = append(found, d)
		}
	}
	return found
}

func (n *night) kind(kind string) []deed {
	return n.which(func(d deed) bool { return d.Kind == kind })
}

// stateAt returns the state of a job at a given time, or "" before it was enqueued.
func (n *night) stateAt(job string, at time.Time) (state string) {
	for _, d := range n.byJob[job] {
		if !d.At.After(at) {
			state = d.To
		}
	}
	return state
}

// jobsWhere returns the jobs that match, in the order of enqueueing.
func (n *night) jobsWhere(fits func(job string, enqueued deed) bool) (ids []string) {
	for _, d := range n.kind("enqueued") {
		if fits(d.Job, d) {
			ids = append(ids, d.Job)
		}
	}
	return ids
}

// next returns the next claim of the same job after h, or nil.
func (n *night) next(job string, attempt int) *hold {
	for _, h := range n.holds {
		if h.job == job && h.attempt == attempt+1 {
			return h
		}
	}
	return nil
}

func jobsOf(deeds []deed) (ids []string) {
	for _, d := range deeds {
		ids = append(ids, d.Job)
	}
	return ids
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000Z") }

// clock returns a time of the 15th, or, from 22:00 on, of the 14th.
func clock(text string) time.Time {
	day := "2026-03-15T"
	if text >= "22" {
		day = "2026-03-14T"
	}
	at, err := time.Parse(time.RFC3339, day+text+"Z")
	if err != nil {
		panic(err)
	}
	return at
}

func within(at time.Time, from, to string) bool {
	return !at.Before(clock(from)) && !at.After(clock(to))
}

// answer is the output of one command of the cookbook.
type answer struct {
	t   *testing.T
	out string
}

// rows requires n lines that contain text.
func (a *answer) rows(text string, want int) {
	a.t.Helper()
	if got := len(a.with(text)); got != want {
		a.t.Errorf("%d lines with %q, want %d, in\n%s", got, text, want, a.out)
	}
}

func (a *answer) with(text string) (lines []string) {
	for line := range strings.Lines(a.out) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// line requires a line that contains all parts.
func (a *answer) line(parts ...string) {
	a.t.Helper()
	for line := range strings.Lines(a.out) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return
		}
	}
	a.t.Errorf("no line with %q in\n%s", parts, a.out)
}

var ulids = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b01KK[0-9A-Z]{22}\b`)
})

// jobs requires these jobs and no others, each as often as it is listed, in any order.
func (a *answer) jobs(n *night, want []string) {
	a.t.Helper()
	var got []string
	for _, id := range ulids().FindAllString(a.out, -1) {
		if n.queue[id] != "" {
			got = append(got, id)
		}
	}
	want = slices.Sorted(slices.Values(want))
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) == 0 {
		a.t.Errorf("%d jobs, want %d\n%q\nwant\n%q", len(got), len(want), got, want)
	}
}

// is requires exactly this output.
func (a *answer) is(want string) {
	a.t.Helper()
	if a.out != want || want == "" {
		a.t.Errorf("got\n%swant\n%s", a.out, want)
	}
}

// seconds formats d as the SQL of the cookbook does, with so many decimals.
func seconds(d time.Duration, decimals int) string {
	return fmt.Sprintf("%.*fs", decimals, d.Seconds())
}

// gathered counts values by group.
type gathered struct {
	name        string
	count       int
	jobs        map[string]bool
	first, last time.Time
}

func gather(deeds []deed, name func(deed) string) []*gathered {
	var all []*gathered
	for _, d := range deeds {
		i := slices.IndexFunc(all, func(g *gathered) bool { return g.name == name(d) })
		if i < 0 {
			i = len(all)
			all = append(all, &gathered{name: name(d), first: d.At, jobs: make(map[string]bool)})
		}
		all[i].count++
		all[i].jobs[d.Job] = true
		all[i].last = d.At
	}
	return all
}

// one returns the only job whose id begins with prefix.
func (n *night) one(t *testing.T, prefix string) string {
	t.Helper()
	ids := n.jobsWhere(func(job string, _ deed) bool { return strings.HasPrefix(job, prefix) })
	if len(ids) != 1 {
		t.Fatalf("%d jobs begin with %s: the night has changed, and the cookbook must follow", len(ids), prefix)
	}
	return ids[0]
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// lastSign is the last event of a process, and the claims that were taken from it.
func (n *night) lastSign(boot string) (last time.Time, started deed, lost int) {
	for _, d := range n.kind("worker_started") {
		if d.Data.Boot == boot {
			last, started = d.At, d
		}
	}
	for _, h := range n.holds {
		if h.boot != boot {
			continue
		}
		last = latest(last, h.from, h.beat)
		switch h.outcome {
		case "succeeded", "failed", "released":
			last = latest(last, h.end)
		case "reclaimed":
			lost++
		}
	}
	return last, started, lost
}

func byLast(n *night) []string {
	return slices.SortedFunc(slices.Values(n.silent), func(a, b string) int {
		x, _, _ := n.lastSign(a)
		y, _, _ := n.lastSign(b)
		return cmp.Or(x.Compare(y), cmp.Compare(a, b))
	})
}
