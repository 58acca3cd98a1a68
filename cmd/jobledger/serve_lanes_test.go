package main

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

// lanesAnswer is what tests read of lanes.
type lanesAnswer struct {
	From     time.Time
	Claims   int
	Group    string
	Lanes    []testLane
	Idle     []testLane
	Row      []int
	Event    []int64
	How      []int
	Outcomes []string
	Sign     [][2]int64
	Lease    [][2]int64
	Acts     []struct {
		At, Pos                 int64
		By, Kind, Words, Reason string
		Count                   int
	}
	Deploys []struct {
		At, Until int64
		From, To  string
		Workers   []string
	}
}

type testLane struct {
	Group, Worker, Host string
	Claims, Processes   int
}

func readLanes(t *testing.T, get func(string) string, query string) (l lanesAnswer) {
	t.Helper()
	body := get("/api/v1/lanes?" + query)
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatalf("%s: %v\n%.300s", query, err, body)
	}
	return l
}

// TestLanes reads the lanes of the bad night, and the pictures of its jobs, in which claims have the same
// shapes.
func TestLanes(t *testing.T) {
	ledgertest.OfSQLite(t) // its statements are those of SQLite
	t.Parallel()
	s, get := serveNight(t)
	t.Run("leases", func(t *testing.T) { lanesHaveTheEndsOfLeases(t, s, get) })
	t.Run("shapes", func(t *testing.T) { ownersHaveShapes(t, s, get) })
	t.Run("operators", func(t *testing.T) { lanesHaveWhatOperatorsDid(t, s, get) })
	t.Run("groups", func(t *testing.T) { lanesByGroup(t, s, get) })
	t.Run("moment", func(t *testing.T) { lanesEndAtTheirMoment(t, s, get) })
}

const nightWindow = "from=2026-03-14T23:30:00Z&to=2026-03-15T04:00:00Z"

// lanesHaveTheEndsOfLeases compares when leases ended with what the events say.
func lanesHaveTheEndsOfLeases(t *testing.T, s *scenario, get func(string) string) {
	l := readLanes(t, get, nightWindow)
	lost := 0
	for _, how := range l.How {
		if l.Outcomes[how] == "reclaimed" {
			lost++
		}
	}
	if lost < 4 || len(l.Lease) != lost {
		t.Fatalf("%d of %d lost claims have the end of their lease", len(l.Lease), lost)
	}
	for _, lease := range l.Lease {
		end := l.From.Add(time.Duration(lease[1]) * time.Millisecond).UTC().Format("2006-01-02T15:04:05.000")
		want := strings.TrimSpace(queried(t, s.Store.DSN(), fmt.Sprintf("SELECT r.data ->> 'lease_until' FROM "+
			"history c JOIN history r ON r.job = c.job AND r.attempt = c.attempt AND r.kind = 'reclaimed' "+
			"WHERE c.pos = %d", l.Event[lease[0]])))
		if !strings.HasPrefix(want, end) {
			t.Errorf("the lease of the claim at %d ended at %s, want %s", l.Event[lease[0]], end, want)
		}
	}
}

// ownersHaveShapes looks at the picture of a job of each outcome: none needs its color.
func ownersHaveShapes(t *testing.T, s *scenario, get func(string) string) {
	groups := regexp.MustCompile(`(?s)<g class="(\w+)">(.*?)</g>`)
	const twice = "01KKQGAZ43CWGCX9CD0BRFPDB6"
	of := func(outcome string) string {
		return strings.TrimSpace(queried(t, s.Store.DSN(), "SELECT job FROM attempts WHERE outcome = '"+outcome+
			"' AND job <> '"+twice+"' ORDER BY julianday(ended_at) - julianday(claimed_at) DESC LIMIT 1"))
	}
	for _, c := range []struct {
		kind, job string
		parts     []string // of its shape
	}{
		{"succeeded", of("succeeded"), []string{`<rect `}},
		{"failed", of("failed"), []string{`class="notch"`}},
		{"cancelled", of("cancelled"), []string{`height="8"`, `height="24"`}},
		{"reclaimed", twice, []string{`class="hollow"`, `class="lease"`, `class="cross"`, "its lease to 01:05:5"}},
		{"refused", twice, []string{`class="joins"`, `class="cross"`}},
		{"released", of("released"), []string{`class="faint"`, `<line `}},
	} {
		page := get("/jobs/" + c.job)
		_, picture, _ := strings.Cut(page, `aria-label="Who had the job;`)
		picture, _, _ = strings.Cut(picture, "<p class=\"ends\">")
		found := ""
		for _, g := range groups.FindAllStringSubmatch(picture, -1) {
			if g[1] == c.kind {
				found = g[2]
			}
		}
		for _, part := range c.parts {
			if !strings.Contains(found, part) {
				t.Errorf("job %s: the shape of %s has no %s: %s", c.job, c.kind, part, found)
			}
		}
	}
}

// lanesHaveWhatOperatorsDid compares the acts of lanes with the events, and the new versions with the
// starts of workers, even if the old ones started before the window.
func lanesHaveWhatOperatorsDid(t *testing.T, s *scenario, get func(string) string) {
	l := readLanes(t, get, nightWindow)
	var words []string
	for _, a := range l.Acts {
		words = append(words, a.Words)
		want := fmt.Sprintf("%s|%s|%d", a.By, a.Kind, a.Count)
		got := strings.TrimSpace(queried(t, s.Store.DSN(), fmt.Sprintf("SELECT actor || '|' || kind || '|' || "+
			"(SELECT count(*) FROM history o WHERE o.kind = h.kind AND o.actor = h.actor AND o.pos <= h.pos) "+
			"FROM history h WHERE pos = %d", a.Pos)))
		if got != want || a.Reason == "" || a.At <= 0 {
			t.Errorf("act at %d: %s because of %q, the events say %s", a.Pos, want, a.Reason, got)
		}
	}
	want := []string{"paused mail", "resumed mail", "retried 54 jobs", "cancelled 33 jobs",
		"erased a job"}
	if !slices.Equal(words, want) {
		t.Errorf("operators did %q, want %q", words, want)
	}
	if acts := readLanes(t, get, nightWindow+"&queue=render").Acts; len(acts) != 2 || acts[0].Count != 33 {
		t.Errorf("in queue render operators did %+v, want 33 jobs cancelled and one erased", acts)
	}
	if len(l.Deploys) != 0 {
		t.Errorf("there is a new version in a window without any: %+v", l.Deploys)
	}
	text := get("/lanes?from=2026-03-14T22:50:00Z&to=2026-03-15T04:00:00Z")
	for _, part := range []string{">queue paused</a> by cli:ada@desk", ">cancelled, 33 jobs</a> by cli:ada@desk",
		"From 23:00:00 on alpha-mail, alpha-render, bravo-mail"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page of lanes does not say %q", part)
		}
	}
	for _, from := range []string{"2026-03-14T21:30:00Z", "2026-03-14T22:50:00Z"} {
		d := readLanes(t, get, "from="+from+"&to=2026-03-14T23:30:00Z").Deploys
		if len(d) != 1 || d[0].From != "v1" || d[0].To != "v2" || len(d[0].Workers) < 3 || d[0].Until < d[0].At {
			t.Errorf("new versions from %s on: %+v, want v1 to v2 of several workers", from, d)
		}
	}
}

// lanesByGroup compares the rows of lanes, grouped in each way, with the claims; workers without any are
// apart.
func lanesByGroup(t *testing.T, s *scenario, get func(string) string) {
	const live = " FROM attempts WHERE claimed_at <= '2026-03-15T04:00:00.000000Z' AND (ended_at IS NULL OR " +
		"ended_at > '2026-03-14T23:30:00.000000Z') GROUP BY 1 ORDER BY 1"
	for group, row := range map[string]string{"host": "host || ' ' || host", "queue": "queue || ' ' || host",
		"none": "' ' || host"} {
		l := readLanes(t, get, nightWindow+"&px=1200&group="+group)
		var rows []string
		for _, lane := range l.Lanes {
			rows = append(rows, fmt.Sprintf("%s %s %s %d", lane.Group, lane.Host, lane.Worker, lane.Claims))
		}
		if group != "none" && !slices.IsSorted(rows) {
			t.Errorf("rows by %s are in no order: %q", group, rows)
		}
		slices.Sort(rows)
		want := strings.Split(strings.TrimRight(queried(t, s.Store.DSN(),
			"SELECT "+row+" || ' ' || worker || ' ' || count(*)"+strings.Replace(live, "GROUP BY 1",
				"GROUP BY "+row+", worker", 1)), "\n"), "\n")
		if l.Group != group || !slices.Equal(rows, want) {
			t.Errorf("rows by %s are %q, want %q", l.Group, rows, want)
		}
	}
	get("/lanes?group=queue&" + nightWindow)
	pause := readLanes(t, get, "from=2026-03-15T01:56:00Z&to=2026-03-15T02:04:00Z")
	var idle []string
	for _, lane := range pause.Idle {
		idle = append(idle, lane.Worker)
	}
	if want := []string{"alpha-mail", "bravo-mail", "charlie-mail"}; len(idle) < 3 || !slices.Equal(want,
		slices.DeleteFunc(idle, func(name string) bool { return !strings.HasSuffix(name, "-mail") })) {
		t.Errorf("without claims while the queue mail was paused: %q, want %q and perhaps others", idle, want)
	}
	if all := len(pause.Idle) + len(pause.Lanes); all != 6 {
		t.Errorf("%d workers lived while the queue mail was paused, want 6", all)
	}
	_, fetch := serveOn(t, s.Store, atMorning)
	for _, path := range []string{"/lanes?group=worker", "/api/v1/lanes?group=worker"} {
		if status, _, body := fetch(path); status != 400 ||
			!strings.Contains(body, "group is one of host, queue, none") {
			t.Errorf("%s: %d %s, want 400 and the list", path, status, body)
		}
	}
}

// lanesEndAtTheirMoment looks at the page of a moment: its script knows the moment, and no link leads past
// it.
func lanesEndAtTheirMoment(t *testing.T, _ *scenario, get func(string) string) {
	const at = "2026-03-15T01:16:30"
	page := html.UnescapeString(get("/lanes?at=" + at + "Z&from=2026-03-15T00:30:00Z"))
	for _, part := range []string{`data-until="` + at, `data-past="true"`, "&to=" + url.QueryEscape(at+"Z")} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %s", part)
		}
	}
	source := regexp.MustCompile(`data-lanes="([^"]*)"`).FindStringSubmatch(page)[1]
	if !strings.Contains(source, "at=pos%3A") {
		t.Errorf("the script reads %s, which is not about the moment", source)
	}
	windows := regexp.MustCompile(`(href|data-map)="([^"]*[?&]to=[^"]*)"`)
	for _, link := range windows.FindAllStringSubmatch(page, -1) {
		address, err := url.Parse(link[2])
		check(t, err)
		if to := address.Query().Get("to"); to > at+"Z" {
			t.Errorf("%s leads past %s", link[2], at)
		}
	}
	var l struct{ To time.Time }
	check(t, json.Unmarshal([]byte(get("/api/v1/lanes?from=2026-03-15T00:30:00Z&to=2026-03-15T03:00:00Z&at="+
		at+"Z")), &l))
	if got := l.To.UTC().Format("2006-01-02T15:04:05"); got > at {
		t.Errorf("lanes as of %s end at %s", at, got)
	}
}
