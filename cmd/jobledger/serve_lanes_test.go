package main

import (
	"encoding/json"
	"fmt"
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

func readLanes(t *testing.T, get func(string) string, query string) (l lanesAnswer) {
	t.Helper()
	body := get("/api/v1/lanes?" + query)
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatalf("%s: %v\n%.300s", query, err, body)
	}
	return l
}

const nightWindow = "from=2026-03-14T23:30:00Z&to=2026-03-15T04:00:00Z"

// TestLanesHaveTheEndsOfLeases compares when leases ended with what the events say.
func TestLanesHaveTheEndsOfLeases(t *testing.T) {
	ledgertest.OfSQLite(t) // its statements are those of SQLite
	t.Parallel()
	s, get := serveNight(t)
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

// TestOwnersHaveShapes looks at the picture of a job of each outcome: none needs its color.
func TestOwnersHaveShapes(t *testing.T) {
	ledgertest.OfSQLite(t) // its statements are those of SQLite
	t.Parallel()
	s, get := serveNight(t)
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

// TestLanesHaveWhatOperatorsDid compares the acts of lanes with the events, and the new versions with the
// starts of workers, also where those of before started before the window.
func TestLanesHaveWhatOperatorsDid(t *testing.T) {
	ledgertest.OfSQLite(t) // its statements are those of SQLite
	t.Parallel()
	s, get := serveNight(t)
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
	for _, from := range []string{"2026-03-14T21:30:00Z", "2026-03-14T22:50:00Z"} {
		d := readLanes(t, get, "from="+from+"&to=2026-03-14T23:30:00Z").Deploys
		if len(d) != 1 || d[0].From != "v1" || d[0].To != "v2" || len(d[0].Workers) < 3 || d[0].Until < d[0].At {
			t.Errorf("new versions from %s on: %+v, want v1 to v2 of several workers", from, d)
		}
	}
}
