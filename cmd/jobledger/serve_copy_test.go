package main

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
)

var copiedSQL = regexp.MustCompile(`(?s)<dt>SQL</dt><dd><code>(.*?)</code>`)

// Each page has SQL and curl for what it shows, now and in the past; the SQL runs, and that of the overview
// and of a queue gives the numbers of the page.
func TestPagesHaveSQLThatRuns(t *testing.T) {
	t.Parallel()
	s, get := serveNight(t)
	dsn := s.Store.DSN()
	job := strings.TrimSpace(queried(t, dsn, "SELECT job FROM history WHERE kind = 'refused' LIMIT 1"))
	sqlOf := func(path string) (answer string) {
		t.Helper()
		page := get(path)
		if !strings.Contains(page, "<dt>curl</dt>") && !strings.HasPrefix(path, "/events?at") {
			t.Errorf("%s has no curl", path)
		}
		found := copiedSQL.FindStringSubmatch(page)
		if found == nil {
			t.Errorf("%s has no SQL", path)
			return ""
		}
		return queried(t, dsn, html.UnescapeString(found[1]))
	}
	window := "from=pos:700&to=pos:2159"
	for _, path := range []string{"/jobs", "/jobs?queue=mail&state=failed&limit=20", "/jobs/" + job, "/events",
		"/events?kind=refused", "/events?at=pos:700", "/tail?kind=failed", "/failures?" + window,
		"/lanes?" + window, "/workers", "/workers?at=pos:2159",
		"/workers/charlie-mail?" + window,
		"/diff?" + window,
		"/incident?" + window, "/integrity", "/queues/mail?" + window} {
		if sqlOf(path) == "" && path != "/workers" { // no worker has a job in the morning
			t.Errorf("%s: its SQL finds nothing", path)
		}
	}
	for _, pos := range []string{"", "700", "2159"} {
		path, query := "/", ""
		if pos != "" {
			query = "?at=pos:" + pos
		}
		want := make(map[string]bool)
		for line := range strings.Lines(sqlOf(path + query)) {
			want[strings.TrimSpace(line)] = true
		}
		table := tableOf(t, get(path+query), "<summary>Jobs by state</summary>")
		for _, row := range table[1:] {
			for i := 4; i < len(row) && row[0] != "total"; i++ {
				line := fmt.Sprintf("%s|%s|%s", row[0], strings.ToLower(table[0][i]), row[i])
				if row[i] != "0" && !want[line] {
					t.Errorf("overview%s: its SQL does not give %s, but\n%v", query, line, want)
				}
			}
			if pos == "" || row[0] == "total" {
				continue
			}
			for line := range strings.Lines(sqlOf("/queues/" + row[0] + query)) {
				if !want[strings.TrimSpace(line)] {
					t.Errorf("the queue %s%s: its SQL gives %s", row[0], query, line)
				}
			}
		}
	}
}
