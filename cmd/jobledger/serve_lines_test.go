package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/commands"
)

// A client that takes lines gets all of a list without pages, to the byte what the verb prints, also
// compressed; with limit it gets a page.
func TestListsAsLinesAreWhole(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	job := string(s.turns(4, time.Minute))
	many := slices.Repeat([]commands.Enqueue{{Queue: "mail"}}, api.DefaultLimit) // with those, more than a page
	_, err := s.Enqueue(t.Context(), "cli:ada@build7", many...)
	check(t, err)
	_, err = s.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"mail"}, Worker: s.worker("w1"),
		Lease: time.Minute, Limit: len(many)})
	check(t, err)
	serving := serveStore(t, s.Store, func() time.Time { return s.Now })
	ask := serving.asker(t, access.Read)
	for path, words := range map[string]string{
		"/events":                         "events",
		"/events?kind=claimed&queue=mail": "events --kind claimed -q mail",
		"/events?at=pos:150":              "events --as-of pos:150",
		"/events?kind=schedule_set":       "events --kind schedule_set", // none
		"/jobs":                           "list --limit 0",
		"/jobs?state=failed&at=pos:210":   "list --limit 0 --state failed --as-of pos:210",
		"/jobs/" + job + "/events":        "history " + job,
		"/attempts":                       "attempts",
		"/attempts?worker=w1":             "attempts --worker w1",
		"/jobs/" + job + "/attempts":      "attempts --job " + job,
		"/events?from=pos:5&to=pos:210":   "events --from pos:5 --to pos:210",
	} {
		var want bytes.Buffer
		err := serving.ask(t.Context(), &want, append(strings.Fields(words), "--json"))
		if (err != nil) != (want.Len() == 0) {
			t.Errorf("%s: %v", words, err)
		}
		answer := ask(path, "Accept", "application/x-ndjson")
		if got := readAll(t, answer); answer.StatusCode != 200 || got != want.String() ||
			answer.Header.Get("Jobledger-Pos") == "" || answer.Header.Get("Link") != "" {
			t.Errorf("%s: %s, %d lines, want %d; %v", path, answer.Status, strings.Count(got, "\n"),
				bytes.Count(want.Bytes(), []byte("\n")), answer.Header)
		}
		zipped := ask(path, "Accept", "application/x-ndjson", "Accept-Encoding", "gzip")
		if got := unzipped(t, zipped.Body); got != want.String() {
			t.Errorf("%s compressed: %d bytes, want %d", path, len(got), want.Len())
		}
	}
	for _, path := range []string{"/events?limit=5", "/jobs?limit=5", "/attempts?limit=5", "/events?last=5"} {
		answer := ask(path, "Accept", "application/x-ndjson")
		if got := readAll(t, answer); strings.Count(got, "\n") != 5 ||
			(answer.Header.Get("Link") == "") != strings.Contains(path, "last") {
			t.Errorf("%s: %s %v\n%s", path, answer.Status, answer.Header, got)
		}
	}
	for path, want := range map[string]int{"/events?kind=lost": 400, "/events?colour=1": 400,
		"/jobs?at=soon": 400, "/attempts?outcome=lost": 400, "/jobs/01KZZZZZZZZZZZZZZZZZZZZZZZ/events": 404} {
		answer := ask(path, "Accept", "application/x-ndjson")
		if kind := answer.Header.Get("Content-Type"); answer.StatusCode != want ||
			kind != "application/problem+json" {
			t.Errorf("%s: %s, %s", path, answer.Status, kind)
		}
	}
	s.Verify()
}
