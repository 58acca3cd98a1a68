package main

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDiffLeadsOn follows the links of a diff: each number of its table to the jobs that it counts, the swap
// to the same table with rows and columns exchanged and back, and from a past moment to what has changed
// since.
func TestDiffLeadsOn(t *testing.T) {
	t.Parallel()
	_, fetch := serveOn(t, importNight(t).Store, atMorning)
	get := func(path string) string {
		t.Helper()
		status, _, page := fetch(html.UnescapeString(path))
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, page)
		}
		return page
	}
	const label = `aria-label="jobs by state"`
	page := get("/diff?from=2026-03-15T00:15:00Z&to=2026-03-15T01:50:00Z")
	cells := regexp.MustCompile(`href="(/diff\?[^"]*#chosen)">(\d+)<`).FindAllStringSubmatch(page, -1)
	if len(cells) < 3 {
		t.Fatalf("the cells are %q", cells)
	}
	for _, cell := range cells {
		chosen := get(strings.TrimSuffix(cell[1], "#chosen"))
		listed := regexp.MustCompile(`<li><a href="/jobs/[^"]*">`).FindAllString(chosen, -1)
		if len(listed) == 0 || !strings.Contains(chosen, "<p>"+cell[2]+" job") {
			t.Errorf("%s lists %d jobs, want %s", cell[1], len(listed), cell[2])
		}
	}
	swap := regexp.MustCompile(`href="([^"]*swap=true[^"]*)"><span`).FindStringSubmatch(page)
	if swap == nil {
		t.Fatal("no link swaps")
	}
	swapped := get(swap[1])
	before, after := tableOf(t, page, label), tableOf(t, swapped, label)
	if len(before) != len(after[0]) || len(before[0]) != len(after) {
		t.Fatalf("swapped, %q is %q", before, after)
	}
	title := func(text string) string { return strings.ToLower(strings.TrimPrefix(text, "→ ")) }
	for i, row := range before[1:] {
		column := slices.IndexFunc(after[0], func(text string) bool { return title(text) == row[0] })
		for k, n := range row[1:] {
			line := slices.IndexFunc(after, func(r []string) bool { return r[0] == title(before[0][k+1]) })
			if column < 1 || line < 1 || after[line][column] != n {
				t.Errorf("row %d, column %d: %s became another", i+1, k+1, n)
			}
		}
	}
	if back := regexp.MustCompile(`href="([^"]*)"><span`).FindStringSubmatch(swapped); back == nil ||
		!slices.EqualFunc(tableOf(t, get(back[1]), label), before, slices.Equal) {
		t.Errorf("swapped twice, it is another: %q", back)
	}
	past := get("/jobs?at=pos:2159")
	since := regexp.MustCompile(`href="([^"]*)">Compare with now`).FindStringSubmatch(past)
	if since == nil {
		t.Fatal("a page about the past does not lead to what has changed since")
	}
	if page := get(since[1]); !strings.Contains(page, "(pos 2159) to ") ||
		!strings.Contains(page, "what changed: 2405 events") {
		t.Errorf("since the moment: %s", page)
	}
	if strings.Contains(get("/jobs"), "Compare with now") {
		t.Error("a page about now leads there too")
	}
	for _, query := range []string{"was=running", "is=failed", "was=queued&is=lost", "was=x&is=failed",
		"swap=1"} {
		if status, _, text := fetch("/diff?" + query); status != 400 {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
}

// TestIncidentDrawsLanes looks at the picture that a page about an incident has without a script: each lost
// claim and each late write is in it, at its time.
func TestIncidentDrawsLanes(t *testing.T) {
	t.Parallel()
	_, fetch := serveOn(t, importNight(t).Store, atMorning)
	_, _, page := fetch("/incident?from=2026-03-14T23:30:00Z&to=2026-03-15T04:00:00Z")
	_, list, found := strings.Cut(page, `<ol class="swim">`)
	list, _, closed := strings.Cut(list, "</ol>")
	if !found || !closed {
		t.Fatalf("the page has no lanes: %s", page)
	}
	for kind, want := range map[string]int{"reclaimed": 7, "refused": 6} {
		if got := strings.Count(list, `<g class="`+kind+`">`); got != want {
			t.Errorf("%d %s, want %d", got, kind, want)
		}
	}
	_, charlie, _ := strings.Cut(list, "<title>charlie-render on charlie</title>")
	charlie, _, _ = strings.Cut(charlie, "</li>")
	// its last heartbeat came at 00:16:45, and its jobs were taken back at 00:41:00, of 23:30 to 04:00
	for _, want := range []string{`class="hollow" x="17.32%" y="5" width="8.98`,
		`<svg x="26.3%" overflow="visible"><path class="cross"`, "<desc>50 claims: 48 succeeded, 2 lost</desc>"} {
		if !strings.Contains(charlie, want) {
			t.Errorf("the lane of charlie-render does not have %s: %s", want, charlie)
		}
	}
}
