package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// answerSchema is as much of a JSON schema as the document of the API has.
type answerSchema struct {
	Ref        string `json:"$ref"`
	Type       any
	Required   []string
	Properties map[string]answerSchema
	Items      *answerSchema
}

// apiDocument is the description of the API.
type apiDocument struct {
	Paths map[string]struct {
		Get struct {
			Responses map[string]struct {
				Content map[string]struct{ Schema answerSchema }
			}
		}
	}
	Components struct{ Schemas map[string]answerSchema }
}

// check reports what of value the schema does not have. A field that it does not describe is an error here,
// although readers must ignore it.
func (d apiDocument) check(t *testing.T, where string, s answerSchema, value any) {
	t.Helper()
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		if s, ok = d.Components.Schemas[name]; !ok {
			t.Fatalf("%s: there is no schema %s", where, name)
		}
	}
	got := ""
	switch v := value.(type) {
	case nil:
		got = "null"
	case bool:
		got = "boolean"
	case string:
		got = "string"
	case float64:
		if got = "number"; v == math.Trunc(v) {
			got = "integer"
		}
	case []any:
		got = "array"
		for _, item := range v {
			if s.Items != nil {
				d.check(t, where+"[]", *s.Items, item)
			}
		}
	case map[string]any:
		got = "object"
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				t.Errorf("%s has no %s", where, name)
			}
		}
		for name, field := range v {
			if of, ok := s.Properties[name]; ok {
				d.check(t, where+"."+name, of, field)
			} else if len(s.Properties) > 0 {
				t.Errorf("%s.%s is not in the document", where, name)
			}
		}
	}
	types, ok := s.Type.([]any)
	if !ok {
		types = []any{s.Type}
	}
	if !slices.Contains(types, any(got)) && (got != "integer" || !slices.Contains(types, any("number"))) {
		t.Errorf("%s is of type %s, want %v", where, got, types)
	}
}

// Each path of the document answers, and each answer is what the document says.
func TestAnswersAreInTheDocument(t *testing.T) {
	t.Parallel()
	s := importNight(t)
	_, get := serveOn(t, s.Store, atMorning)
	_, _, text := get("/api/v1/openapi.json")
	var d apiDocument
	check(t, json.Unmarshal([]byte(text), &d))
	const job = "01KKQGAZ43CWGCX9CD0BRFPDB6"
	asked := 0
	for path, operation := range d.Paths {
		if path == "/api/v1/events/stream" { // it has no end; the tests of streams read it
			continue
		}
		if operation.Get.Responses == nil || strings.HasPrefix(path, "/api/v1/claims") {
			continue // for producers and workers: the test of package web sends their examples
		}
		address := strings.NewReplacer("{job}", job, "{queue}", "mail", "{pos}", "17", "{attempt}", "1", "{stream}",
			"out").Replace(path)
		addresses := []string{address}
		switch path {
		case "/api/v1/status", "/api/v1/queues", "/api/v1/jobs", "/api/v1/workers", "/api/v1/jobs/{job}/why",
			"/api/v1/jobs/{job}", "/api/v1/jobs/{job}/owner", "/api/v1/queues/{queue}", "/api/v1/attempts",
			"/api/v1/jobs/{job}/attempts", "/api/v1/depth", "/api/v1/events", "/api/v1/moments", "/api/v1/ledger",
			"/api/v1/jobs/{job}/events", "/api/v1/jobs/{job}/payload":
			addresses = append(addresses, address+"?at=pos:2159")
		}
		for _, address := range addresses {
			status, header, body := get(address)
			kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
			content, ok := operation.Get.Responses["200"].Content[kind]
			if status == 404 && (path == "/api/v1/jobs/{job}/result" || strings.Contains(path, "/logs/")) {
				content, ok = operation.Get.Responses["default"].Content[kind]
			} else if status != 200 {
				t.Errorf("%s: %d\n%s", address, status, body)
			}
			if !ok {
				t.Errorf("%s is of the type %s, which is not in the document", address, kind)
			}
			asked++
			if !strings.HasSuffix(kind, "json") {
				continue
			}
			if kind == "application/x-ndjson" {
				body, _, _ = strings.Cut(body, "\n")
			}
			var value any
			check(t, json.Unmarshal([]byte(body), &value))
			d.check(t, address, content.Schema, value)
		}
	}
	status, _, body := get("/api/v1/jobs?state=lost")
	var value any
	check(t, json.Unmarshal([]byte(body), &value))
	d.check(t, "a problem", d.Components.Schemas["Problem"], value)
	if status != 400 || asked < 40 {
		t.Errorf("a problem: %d; %d answers were checked", status, asked)
	}
}
