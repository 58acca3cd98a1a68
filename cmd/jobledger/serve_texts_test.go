package main

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/words"
)

// The value of a field, which is sent back as it is.
var fieldValue = regexp.MustCompile(` value="[^"]*"`)

// What a producer, a worker or an operator wrote changes nothing of the text around it on any page: it has no
// character that turns the direction of writing or hides, and names in other scripts are isolated.
func TestProducerTextStaysInItsCell(t *testing.T) {
	t.Parallel()
	s, ids := evilScenario(t)
	_, get := serveOn(t, s.Store, time.Now)
	paths := []string{"/", "/jobs", "/jobs?find=" + url.QueryEscape(evil[:6]), "/events", "/tail",
		"/queues/mail", "/workers?all=true", "/workers/" + url.PathEscape(evil), "/failures", "/lanes", "/incident",
		"/diff?from=pos:1", "/integrity", "/?at=pos:9", "/jobs?at=pos:9", "/workers?at=pos:9", "/api"}
	for _, id := range ids {
		paths = append(paths, "/jobs/"+string(id), "/jobs/"+string(id)+"?at=pos:14", "/events?job="+string(id))
	}
	escaped := 0
	for _, path := range paths {
		status, _, page := get(path)
		if status != 200 && !strings.HasPrefix(path, "/workers/") {
			t.Errorf("%s: %d", path, status)
		}
		text := html.UnescapeString(fieldValue.ReplaceAllString(page, ""))
		for i, r := range text {
			if r != '\n' && r != '\t' && words.Harmful(r) {
				t.Errorf("%s has %+q", path, text[max(0, i-60):min(len(text), i+20)])
				break
			}
		}
		escaped += strings.Count(text, `\u202e`)
	}
	if escaped < 100 {
		t.Errorf("%d texts were escaped", escaped)
	}
	checkVerified(t, s)
}
