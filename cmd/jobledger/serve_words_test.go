package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/commands/remote/wire"
)

// flagWord is a flag of the command line, or a place where one is described.
var flagWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|[^-\w"])--[a-z]|'jobledger [a-z ]*--help'|\bas-of\b`)
})

// quoted is a part of a text that was sent.
var quoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(\\.|[^"\\])*"`) })

// What is said over HTTP about a wrong parameter speaks of parameters: the caller has no command line.
func TestProblemsSpeakOfParameters(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	serving := serveStore(t, s.Store, atMorning)
	get := getter(t, serving)
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	check(t, json.Unmarshal(api.Document, &document))
	wrong := []string{"", "x", "0", "pos:999999999", "pos:-1", "pos:2", "-900y", "2026-05-04T10:00:00", "now",
		"1.5", "Mail!", "failed", "true"}
	refused, nameless := make(map[string]string), make(map[string]string)
	said := func(address string, status int, text string) {
		t.Helper()
		if status < 400 {
			return
		}
		var p wire.Problem
		check(t, json.Unmarshal([]byte(text), &p))
		texts := []string{p.Detail}
		if p.Hint != nil {
			texts = append(texts, *p.Hint)
		}
		for _, e := range p.Errors {
			texts = append(texts, e.Detail)
		}
		for _, text := range texts {
			refused[quoted().ReplaceAllString(text, `""`)] = address
		}
		if p.Status == 400 && p.Field == "" && len(p.Errors) == 0 {
			nameless[quoted().ReplaceAllString(p.Detail, `""`)] = address
		}
	}
	see := func(address string) {
		t.Helper()
		status, _, text := get(address)
		said(address, status, text)
	}
	const job = "01KKQGAZ43CWGCX9CD0BRFPDB6"
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		operation, ok := document.Paths[path]["get"]
		if !ok || strings.HasPrefix(path, "/api/v1/claims") || strings.HasSuffix(path, "/stream") ||
			strings.HasSuffix(path, "/export") {
			continue
		}
		address := strings.NewReplacer("{job}", job, "{queue}", "mail", "{pos}", "17", "{attempt}", "1",
			"{report}", "causes", "{stream}",
			"out").Replace(path)
		var names []string
		for _, p := range operation.Parameters {
			if p.In == "query" {
				names = append(names, p.Name)
			}
		}
		for i, name := range names {
			for _, value := range wrong {
				see(address + "?" + url.Values{name: {value}}.Encode())
			}
			for _, other := range names[:i] {
				for _, values := range [][2]string{{"pos:2", "pos:1"}, {"-2h", "-1h"}, {"finished", "-1h"},
					{"-1h", "finished"}} {
					see(address + "?" + url.Values{name: {values[0]}, other: {values[1]}}.Encode())
				}
			}
		}
		if strings.Contains(path, "{job}") {
			see(strings.Replace(path, "{job}", "xyz!", 1))
			see(strings.Replace(path, "{job}", "01KKQG", 1))
			see(strings.Replace(path, "{job}", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", 1))
		}
	}
	token := serving.tokenFor(t, access.Read, access.Operate, access.Enqueue)
	post := func(address, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serving.base+address,
			strings.NewReader(body))
		check(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", token)
		answer, err := http.DefaultClient.Do(r)
		check(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		check(t, err)
		said(address+" "+body, answer.StatusCode, string(text))
	}
	for _, value := range wrong {
		text, err := json.Marshal(value)
		check(t, err)
		for _, filter := range []string{"queue", "state", "tag", "key", "from", "to", "by", "error", "exit",
			"find"} {
			post("/api/v1/acts", fmt.Sprintf(`{"act":"retry","at":"pos:9","dry_run":true,"filter":{%q:[%s]}}`, filter,
				text))
		}
		for _, field := range []string{"act", "at", "spread", "run_at"} {
			post("/api/v1/acts", fmt.Sprintf(`{"act":"reschedule","at":"pos:9","dry_run":true,"filter":{"queue":`+
				`["mail"]},%q:%s}`, field, text))
		}
		for _, field := range []string{"run_at", "priority", "reason", "delay"} {
			post("/api/v1/jobs/"+job+"/reschedule", fmt.Sprintf(`{%q:%s}`, field, text))
		}
		for _, field := range []string{"queue", "key", "delay", "run_at", "backoff", "unique_while", "tags",
			"after", "priority", "group"} {
			post("/api/v1/jobs", fmt.Sprintf(`{"payload":"x",%q:%s}`, field, text))
		}
	}
	for text, address := range nameless {
		t.Errorf("%s: no field is named: %s", address, text)
	}
	for text, address := range refused {
		if flagWord().MatchString(text) {
			t.Errorf("%s: %s", address, text)
		}
	}
	if len(refused) < 60 {
		t.Errorf("%d different texts", len(refused))
	}
}
