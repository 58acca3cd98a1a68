package main

import (
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/apitest"
)

// Each path of the document answers, and each answer is what the document says.
func TestAnswersAreInTheDocument(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	_, get := serveOn(t, s.Store, atMorning)
	const job = "01KKQGAZ43CWGCX9CD0BRFPDB6"
	asked := 0
	for path, operations := range apitest.Read(t).Paths {
		if path == "/api/v1/events/stream" { // it has no end; the tests of streams read it
			continue
		}
		if operations["get"].Responses == nil || strings.HasPrefix(path, "/api/v1/claims") ||
			strings.Contains(path, "{schedule}") { // the night has none; TestScheduleTicks asks for these
			continue // for producers and workers: the test of package web sends their examples
		}
		address := strings.NewReplacer("{job}", job, "{queue}", "mail", "{pos}", "17", "{attempt}", "1",
			"{report}", "causes", "{stream}",
			"out").Replace(path)
		addresses := []string{address}
		for _, p := range operations["get"].Parameters {
			if p.Name == "at" && p.In == "query" {
				addresses = append(addresses, address+"?at=pos:2159")
			}
		}
		for _, address := range addresses {
			status, header, body := get(address)
			none := strings.HasSuffix(path, "/result") || strings.Contains(path, "/logs/")
			if status != 200 && (status != 404 || !none) {
				t.Errorf("%s: %d\n%s", address, status, body)
			}
			apitest.Answer(t, "GET", address, status, header.Get("Content-Type"), body)
			asked++
		}
	}
	status, header, body := get("/api/v1/jobs?state=lost")
	apitest.Answer(t, "GET", "/api/v1/jobs", status, header.Get("Content-Type"), body)
	if status != 400 || asked < 40 {
		t.Errorf("a problem: %d; %d answers were checked", status, asked)
	}
}
