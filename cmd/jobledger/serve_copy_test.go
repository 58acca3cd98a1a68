package main

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strconv"
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

// The command and the SQL that the page of failures shows are about the failures that it shows: those of its
// queue and worker, if it has one.
func TestFailuresAreCopiedWithTheirFilter(t *testing.T) {
	t.Parallel()
	s, get := serveNight(t)
	s.Now = atMorning()
	for _, filter := range []string{"", "&queue=mail", "&worker=bravo-render",
		"&queue=render&worker=bravo-render"} {
		path := "/failures?from=pos:700&to=pos:2159" + filter
		page := get(path)
		command, sql := copiedCommand.FindStringSubmatch(page), copiedSQL.FindStringSubmatch(page)
		if command == nil || sql == nil {
			t.Fatalf("%s has no command or no SQL:\n%s", path, page)
		}
		code, out, messages := s.run(0, append(strings.Fields(html.UnescapeString(command[1]))[1:], "--json")...)
		var byCommand, bySQL int64
		for line := range strings.Lines(out) {
			var group struct{ Attempts, Count int64 }
			check(t, json.Unmarshal([]byte(line), &group))
			byCommand += max(group.Attempts, group.Count)
		}
		for line := range strings.Lines(queried(t, s.Store.DSN(), html.UnescapeString(sql[1]))) {
			n, err := strconv.ParseInt(strings.Split(line, "|")[1], 10, 64)
			check(t, err)
			bySQL += n
		}
		shown := strings.Contains(page, fmt.Sprintf("%d attempts", bySQL))
		if code != 0 || bySQL == 0 || byCommand != bySQL || !shown {
			t.Errorf("%s: its command has %d attempts (%d, %s), its SQL %d", path, byCommand, code, messages, bySQL)
		}
	}
}
