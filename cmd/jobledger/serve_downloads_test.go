package main

import (
	"compress/gzip"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/worker/attemptlog"
)

// asker returns a function that asks with a token, and does not decompress answers.
func (s servedStore) asker(t *testing.T, scopes ...access.Scope) func(path string,
	header ...string) *http.Response {
	t.Helper()
	return s.askerWith(t, s.tokenFor(t, scopes...))
}

// askerFor is asker with a token for some queues.
func (s servedStore) askerFor(t *testing.T, queues []string, scopes ...access.Scope) func(path string,
	header ...string) *http.Response {
	t.Helper()
	return s.askerWith(t, s.tokenOf(t, queues, scopes...))
}

// askerWith is asker with the header Authorization.
func (s servedStore) askerWith(t *testing.T, token string) func(path string,
	header ...string) *http.Response {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(client.CloseIdleConnections)
	return func(path string, header ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/api/v1"+path, nil)
		check(t, err)
		r.Header.Set("Authorization", token)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer, err := client.Do(r)
		check(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
}

// readAll returns the body of an answer.
func readAll(t *testing.T, answer *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(answer.Body)
	check(t, err)
	return string(text)
}

// An export over HTTP is to the byte what the command writes, also compressed.
func TestExportsOverHTTP(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	serving := serveStore(t, s.Store, atMorning)
	ask := serving.asker(t, access.Read, access.Bodies)
	s.Now = morning
	for query, words := range map[string]string{
		"?bodies=true": "export", "": "export --no-bodies", "?format=csv": "export --format csv",
		"?format=trace":                         "export --format trace",
		"?format=otlp":                          "export --format otlp",
		"?from=pos:100&to=pos:200&bodies=false": "export --no-bodies --from pos:100 --to pos:200",
		"?from=2027-01-01T00:00:00Z":            "export --from 2027-01-01T00:00:00Z", // nothing
	} {
		code, want, messages := s.run(0, strings.Fields(words)...)
		answer := ask("/export" + query)
		if got := readAll(t, answer); code != 0 || answer.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %s, %d bytes, want %d: %s", query, answer.Status, len(got), len(want), messages)
		}
		zipped := ask("/export"+query, "Accept-Encoding", "gzip")
		if got := unzipped(t, zipped.Body); got != want || zipped.Header.Get("Content-Encoding") != "gzip" ||
			zipped.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s compressed: %d bytes, want %d, %v", query, len(got), len(want), zipped.Header)
		}
	}
	for query, want := range map[string]int{"?format=pdf": 400, "?bodies=yes": 400, "?from=pos:9&to=pos:3": 400,
		"?after=3": 400} {
		if answer := ask("/export" + query); answer.StatusCode != want {
			t.Errorf("%s: %s", query, answer.Status)
		}
	}
	reads := serving.asker(t, access.Read)
	if answer := reads("/export?bodies=true"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("bodies for a token that reads: %s", answer.Status)
	}
}

// What a command writes is sent from where the client is, and followed until the attempt ends.
func TestServeLogs(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("a")})
	j := s.claim("w1", "mail")
	folder, err := logs.Folder(s.Store.Path())
	check(t, err)
	path := attemptlog.File(folder, j.ID, 1, false)
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	check(t, err)
	defer file.Close()
	write := func(text string) {
		_, err := file.WriteString(text)
		check(t, err)
	}
	write("one two ")
	ask := serveStore(t, s.Store, func() time.Time { return s.Now }).asker(t, access.Read, access.Bodies)
	checked := "/jobs/" + string(j.ID) + "/logs/"
	for address, want := range map[string]string{"1/out": "one two ", "1/out?after=4": "two ",
		"1/out?after=99": ""} {
		answer := ask(checked + address)
		if got := readAll(t, answer); got != want || answer.Header.Get("Jobledger-After") != "8" {
			t.Errorf("%s: %q, want %q, %v", address, got, want, answer.Header)
		}
	}
	for address, want := range map[string]int{"1/err": 404, "2/out": 404, "0/out": 400, "x/out": 400,
		"1/log": 400, "1/out?after=-1": 400, "1/out?follow=yes": 400, "1/out?tail=1": 400} {
		if answer := ask(checked + address); answer.StatusCode != want {
			t.Errorf("%s: %s", address, answer.Status)
		}
	}
	followed, waits := ask(checked+"1/out?after=4&follow=true"), ask(checked+"1/err?follow=true")
	first := make([]byte, 4)
	_, err = io.ReadFull(followed.Body, first)
	check(t, err)
	write("thr\xc3")
	write("\xa9e")
	next := make([]byte, 6)
	_, err = io.ReadFull(followed.Body, next)
	check(t, err)
	s.do("worker:w1", j, commands.Succeed{Token: j.Token})
	if rest := readAll(t, followed); string(first)+string(next)+rest != "two thrée" {
		t.Errorf("followed: %q, %q and %q", first, next, rest)
	}
	if text := readAll(t, waits); text != "" {
		t.Errorf("an attempt that wrote nothing: %q", text)
	}
}

// The claims of the API are those of the command, page by page; with at they are as they were then.
func TestAttemptsOverHTTP(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	s.Now = morning
	ask := serveStore(t, s.Store, atMorning).asker(t, access.Read)
	const job = "01KKQGAZ43CWGCX9CD0BRFPDB6"
	for path, words := range map[string]string{
		"/attempts?outcome=reclaimed&limit=3":                  "attempts --outcome reclaimed",
		"/attempts?queue=render&limit=1000":                    "attempts -q render",
		"/attempts?from=pos:1500&to=pos:1700&limit=100":        "attempts --from pos:1500 --to pos:1700",
		"/attempts?worker=alpha-mail&overlap=false&limit=700":  "attempts --worker alpha-mail",
		"/attempts?overlap=true":                               "attempts --overlap",
		"/jobs/" + job + "/attempts":                           "attempts --job " + job,
		"/attempts?job=" + job + "&outcome=succeeded&limit=1":  "attempts --outcome succeeded --job " + job,
		"/jobs/" + job + "/attempts?outcome=open&after=1":      "attempts --outcome open --job " + job,
		"/attempts?queue=nothing":                              "attempts -q nothing",
		"/jobs/" + job + "/owner?at=2026-03-15T01:04:50Z":      "owner --as-of 2026-03-15T01:04:50Z " + job,
		"/jobs/" + job + "/owner":                              "owner --as-of now " + job,
		"/attempts?from=2026-03-15T00:10Z&to=pos:1700":         "attempts --from 2026-03-15T00:10Z --to pos:1700",
		"/attempts?outcome=failed&outcome=released&limit=1000": "attempts --outcome failed --outcome released",
	} {
		_, want, _ := s.run(0, append(strings.Fields(words), "--json")...)
		got, pages := "", 0
		for next := path; next != ""; pages++ {
			answer := ask(next, "Accept", "application/x-ndjson")
			got += readAll(t, answer)
			next, _, _ = strings.Cut(strings.TrimPrefix(answer.Header.Get("Link"), "</api/v1"), ">")
		}
		if got != want || strings.Contains(path, "limit=3") && pages < 2 {
			t.Errorf("%s in %d pages:\n%s\nwant\n%s", path, pages, got, want)
		}
	}
	then := readAll(t, ask("/jobs/"+job+"/attempts?at=2026-03-15T01:04:50Z", "Accept", "application/x-ndjson"))
	now := readAll(t, ask("/jobs/"+job+"/attempts", "Accept", "application/x-ndjson"))
	if strings.Count(then, "\n") != 1 || !strings.Contains(then, `"outcome":null`) ||
		strings.Count(now, "\n") < 2 || strings.Contains(now, `"outcome":null`) {
		t.Errorf("the claims then\n%s\nand now\n%s", then, now)
	}
	for path, want := range map[string]int{"/attempts?outcome=lost": 400, "/attempts?at=pos:8&from=pos:9": 400,
		"/attempts?queue=a+b": 400, "/attempts?limit=1001": 400, "/attempts?job=01KZZZZZZZZZZZZZZZZZZZZZZZ": 404,
		"/jobs/01KZZZZZZZZZZZZZZZZZZZZZZZ/attempts": 404, "/jobs/-/attempts": 400, "/events/99999": 404,
		"/events/0": 400, "/queues/nothing": 404, "/queues/a+b": 400, "/depth?px=1001": 400, "/depth?worker=w": 400,
		"/jobs/01KZZZZZZZZZZZZZZZZZZZZZZZ/owner": 404, "/ledger?from=pos:3": 400} {
		if answer := ask(path); answer.StatusCode != want {
			t.Errorf("%s: %s %s", path, answer.Status, readAll(t, answer))
		}
	}
}

// unzipped reads what gzip made.
func unzipped(t *testing.T, r io.Reader) string {
	t.Helper()
	z, err := gzip.NewReader(r)
	check(t, err)
	text, err := io.ReadAll(z)
	check(t, err)
	return string(text)
}

// TestLanesOfferTheirWindow follows the links below the picture of lanes, as a browser without scripts does:
// each is about the window of the page.
func TestLanesOfferTheirWindow(t *testing.T) {
	t.Parallel()
	_, get := serveNight(t)
	page := get("/lanes?from=2026-03-15T00:00:00Z&to=2026-03-15T01:00:00Z&queue=mail")
	_, row, ok := strings.Cut(page, `<p class="offers`)
	row, _, _ = strings.Cut(row, "</p>")
	if !ok || !strings.Contains(row, `<button type="button" id="png"`) ||
		!strings.Contains(row, " hidden>PNG<") {
		t.Fatalf("no button for a picture that waits for its script: %s", row)
	}
	if !strings.Contains(row, `href="#claims"`) ||
		!strings.Contains(page, `<details class="table" id="claims">`) {
		t.Errorf("the table is not where the link leads: %s", row)
	}
	var paths []string
	for _, m := range regexp.MustCompile(`href="(/[^"]*)"`).FindAllStringSubmatch(row, -1) {
		address, err := url.Parse(html.UnescapeString(m[1]))
		check(t, err)
		paths = append(paths, address.Path+" "+address.Query().Get("format"))
		q := address.Query()
		if q.Get("from") != "2026-03-15T00:00:00Z" || q.Get("to") != "2026-03-15T01:00:00Z" {
			t.Errorf("%s is about another window", address)
		}
		body := get(address.String())
		switch q.Get("format") {
		case "trace":
			var trace struct{ TraceEvents []struct{ Ph string } }
			if err := json.Unmarshal([]byte(body), &trace); err != nil || len(trace.TraceEvents) < 50 {
				t.Errorf("the trace has %d events: %v", len(trace.TraceEvents), err)
			}
		case "otlp":
			if !strings.HasPrefix(body, `{"resourceSpans":[`) || strings.Count(body, `"spanId"`) < 100 {
				t.Errorf("the spans are %.200s", body)
			}
		case "csv":
			if !strings.HasPrefix(body, "job,") || strings.Count(body, "\n") < 50 {
				t.Errorf("the CSV is %.200s", body)
			}
		}
	}
	want := []string{"/api/v1/export csv", "/api/v1/export trace", "/api/v1/export otlp",
		"/incident "}
	if !slices.Equal(paths, want) {
		t.Errorf("the links lead to %q, want %q", paths, want)
	}
}
