package main

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/nighttest"
	"jobledger/commands"
)

// importNight returns the ledger of the bad night.
func importNight(t *testing.T) *scenario {
	t.Helper()
	s := newScenario(t)
	nighttest.ImportInto(t, s.Service)
	return s
}

func atMorning() time.Time { return morning }

// serveNight serves the bad night, as it is on the morning after.
func serveNight(t *testing.T) (s *scenario, get func(path string) string) {
	t.Helper()
	s = importNight(t)
	_, fetch := serveOn(t, s.Store, atMorning)
	return s, func(path string) string {
		t.Helper()
		status, _, body := fetch(path)
		if status != 200 {
			t.Errorf("%s: %d\n%s", path, status, body)
		}
		return body
	}
}

var (
	rowPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)<tr[^>]*>(<t[dh].*?)</tr>`)
	})
	cellPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)<t[dh][^>]*>(.*?)</t[dh]>`)
	})
	tagPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`<[^>]*>`)
	})
)

// tableOf returns the first table after the text from of a page: its rows, each with its cells, the header
// first.
func tableOf(t *testing.T, page, from string) (rows [][]string) {
	t.Helper()
	_, rest, ok := strings.Cut(page, from)
	if !ok {
		t.Fatalf("the page has no %q:\n%s", from, page)
	}
	body, _, _ := strings.Cut(rest, "</table>")
	for _, row := range rowPattern().FindAllStringSubmatch(body, -1) {
		var cells []string
		for _, cell := range cellPattern().FindAllStringSubmatch(row[1], -1) {
			cells = append(cells, html.UnescapeString(tagPattern().ReplaceAllString(cell[1], "")))
		}
		rows = append(rows, cells)
	}
	return rows
}

// Each number of a page is what SQL over the views says of that position.
func TestPagesShowWhatTheViewsHave(t *testing.T) {
	t.Parallel()
	s, get := serveNight(t)
	dsn := s.Store.DSN()
	sql := func(format string, args ...any) string {
		return strings.TrimSpace(queried(t, dsn, fmt.Sprintf(format, args...)))
	}
	tail := sql("SELECT max(pos) FROM history")
	for _, pos := range []string{"700", "2159", tail} {
		last := "(SELECT job, max(pos) AS pos FROM history WHERE job IS NOT NULL AND to_state IS NOT NULL " +
			"AND pos <= " + pos + " GROUP BY job) l JOIN history h ON h.pos = l.pos JOIN current c ON c.id = l.job"
		page := get("/?at=pos:" + pos)
		if want := "pos " + pos + " of " + tail + "."; !strings.Contains(page, want) {
			t.Errorf("overview at %s: no %q", pos, want)
		}
		table := tableOf(t, page, "<summary>Jobs by state</summary>")
		for _, row := range table[1:] {
			if row[0] == "total" {
				continue
			}
			number := func(i int) int {
				n, err := strconv.Atoi(row[i])
				check(t, err)
				return n
			}
			got := map[string]int{"queued": number(1) + number(3)}
			for i := 4; i < len(row); i++ {
				got[strings.ToLower(table[0][i])] = number(i)
			}
			for state, n := range got {
				want := sql("SELECT count(*) FROM %s WHERE c.queue = '%s' AND h.to_state = '%s'", last, row[0], state)
				if strconv.Itoa(n) != want {
					t.Errorf("overview at %s: %d %s in %s, want %s", pos, n, state, row[0], want)
				}
			}
		}
		for _, state := range []string{"failed", "running"} {
			shown, path := 0, "/jobs?limit=1000&at=pos:"+pos+"&state="+state
			for path != "" {
				body := get(path)
				shown += strings.Count(body, `<a href="/jobs/`)
				before, _, more := strings.Cut(body, `" rel="next"`)
				if path = ""; more {
					path = html.UnescapeString(before[strings.LastIndex(before, `"`)+1:])
				}
			}
			if want := sql("SELECT count(*) FROM %s WHERE h.to_state = '%s'", last, state); strconv.Itoa(
				shown) != want {
				t.Errorf("jobs %s at %s: %d, want %s", state, pos, shown, want)
			}
		}
		page = get("/events?kind=refused&last=1000&at=pos:" + pos)
		refused := 0
		if !strings.Contains(page, "No event matches.") {
			refused = len(tableOf(t, page, `aria-label="events"`)) - 1
		}
		if want := sql("SELECT count(*) FROM history WHERE kind = 'refused' AND pos <= %s",
			pos); strconv.Itoa(refused) != want {
			t.Errorf("refused at %s: %d, want %s", pos, refused, want)
		}
	}
	const zombie = "01KKQGAZ43CWGCX9CD0BRFPDB6"
	for _, pos := range []string{"2000", "2158", tail} {
		page := get("/jobs/" + zombie + "?at=pos:" + pos)
		events := 0 // of several heartbeats, only the first and the last are there
		for _, row := range tableOf(t, page, `aria-label="history"`)[1:] {
			if row[3] != "heartbeat" {
				events++
			}
		}
		for of, got := range map[string]int{"kind <> 'heartbeat'": events,
			"kind = 'claimed'": len(tableOf(t, page, `aria-label="attempts"`)) - 1} {
			want := sql("SELECT count(*) FROM history WHERE %s AND job = '%s' AND pos <= %s", of, zombie, pos)
			if strconv.Itoa(got) != want {
				t.Errorf("%s at %s: %d, want %s", of, pos, got, want)
			}
		}
		if got := strings.Contains(page, "Done twice"); got != (pos != "2000") {
			t.Errorf("at %s the page says that the job was done twice: %t", pos, got)
		}
	}
}

// A page at a time is the page at the position of the last event by then, and its links lead to other
// moments.
func TestPagesOfMoments(t *testing.T) {
	s, get := serveNight(t)
	const at = "2026-03-15T01:10:00Z"
	pos := strings.TrimSpace(queried(t, s.Store.DSN(), "SELECT max(pos) FROM history WHERE at <= '"+at+"'"))
	n, err := strconv.Atoi(pos)
	check(t, err)
	for _, path := range []string{"/?", "/jobs?queue=mail&", "/events?queue=mail&",
		"/jobs/01KKQGAZ43CWGCX9CD0BRFPDB6?"} {
		page := get(path + "at=" + url.QueryEscape(at))
		for _, part := range []string{"pos " + pos + " of", fmt.Sprintf("at=pos%%3A%d", n-1),
			fmt.Sprintf("at=pos%%3A%d", n+1), ">Back to now</a>", html.EscapeString(at), "The ledger as it was"} {
			if !strings.Contains(page, part) {
				t.Errorf("%s at %s: no %q in\n%s", path, at, part, page)
			}
		}
		if strings.HasPrefix(path, "/jobs?") && !strings.Contains(page, "--queue=mail --limit=50") {
			t.Errorf("the command is missing in\n%s", page)
		}
		if now := get(strings.TrimSuffix(path, "?")); strings.Contains(now, "The ledger as it was") {
			t.Errorf("%s now is about the past", path)
		}
	}
}

// What users and workers wrote is text on each page, and a form field that is empty is none.
func TestPagesEscapeAndRefuse(t *testing.T) {
	s := newScenario(t)
	hostile := `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`
	j := s.enqueue(commands.Enqueue{Queue: "mail", Key: hostile, Payload: []byte(hostile),
		Tags: map[string]string{"a": hostile}})
	_, get := serveOn(t, s.Store, noon)
	for _, path := range []string{"/jobs", "/jobs?queue=&state=&key=" + url.QueryEscape(hostile),
		"/jobs?host=" + url.QueryEscape(hostile), "/jobs/" + string(j.ID), "/events?queue=mail"} {
		status, header, page := get(path)
		if status != 200 || strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") {
			t.Errorf("%s: %d\n%s", path, status, page)
		}
		if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if !strings.Contains(page, string(j.ID)) && !strings.Contains(path, "host=") {
			t.Errorf("%s does not show the job", path)
		}
		for _, inline := range []string{"<style", " style=", " onclick=", "<script>"} {
			if strings.Contains(page, inline) {
				t.Errorf("%s has %q, which its policy forbids", path, inline)
			}
		}
	}
	status, header, body := get("/api/v1/jobs/" + string(j.ID) + "/payload")
	if status != 200 || body != hostile || header.Get("Content-Type") != "application/octet-stream" ||
		header.Get("Content-Disposition") != `attachment; filename="`+string(j.ID)+`.payload"` {
		t.Errorf("payload: %d, %v\n%s", status, header, body)
	}
	for path, want := range map[string]int{
		"/api/v1/jobs/" + string(j.ID) + "/result":      404,
		"/api/v1/jobs/" + string(j.ID) + "/payload?x=1": 400,
		"/jobs?state=lost":                              400,
		"/jobs?db=x":                                    400,
		"/jobs?at=pos:99":                               400,
		"/jobs?at=tomorrow":                             400,
		"/events?kind=nothing":                          400,
		"/jobs/01KZZZZZZZZZZZZZZZZZZZZZZZ":              404,
		"/jobs/" + string(j.ID) + "?at=pos:0":           404,
		"/jobs/--help":                                  400,
	} {
		status, _, page := get(path)
		if isPage := strings.HasPrefix(page, "<!DOCTYPE html>"); status != want ||
			isPage == strings.HasPrefix(path, "/api") {
			t.Errorf("%s: %d, want %d\n%s", path, status, want, page)
		}
	}
}
