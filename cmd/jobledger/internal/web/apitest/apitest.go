// Package apitest checks answers of the API against its description, in tests.
package apitest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"jobledger/cmd/jobledger/internal/web/api"
)

// Document is as much of the description of the API as tests need.
type Document struct {
	Paths map[string]map[string]Operation
}

// Operation is one of its operations.
type Operation struct {
	OperationID string
	Security    *[]map[string]any
	Parameters  []struct{ Name, In string }
	RequestBody struct {
		Content map[string]struct{ Example any }
	}
	Responses map[string]struct {
		Ref     string `json:"$ref"`
		Content map[string]any
	}
}

// schemas are those of the document, compiled at their first use.
type schemas struct {
	Document
	mux      *http.ServeMux
	mu       sync.Mutex // for compiler
	compiler *jsonschema.Compiler
}

var loaded = sync.OnceValues(func() (*schemas, error) {
	s := &schemas{mux: http.NewServeMux(), compiler: jsonschema.NewCompiler()}
	if err := json.Unmarshal(api.Document, &s.Document); err != nil {
		return nil, err
	}
	for path, operations := range s.Paths {
		for method := range operations {
			s.mux.Handle(strings.ToUpper(method)+" "+path, http.NotFoundHandler())
		}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(api.Document))
	if err != nil {
		return nil, err
	}
	components, _ := value.(map[string]any)["components"].(map[string]any)
	all, _ := components["schemas"].(map[string]any)
	for name, schema := range all { // readers must ignore what it does not describe; here it is an error
		if o, ok := schema.(map[string]any); ok && name != "JobFields" {
			o["unevaluatedProperties"] = false
		}
	}
	s.compiler.AssertFormat()
	return s, s.compiler.AddResource("api.json", value)
})

func load(t testing.TB) *schemas {
	t.Helper()
	s, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Read returns the description.
func Read(t testing.TB) Document {
	t.Helper()
	return load(t).Document
}

// Validate reports what in a value violates the schema at this place of the document.
func Validate(t testing.TB, value any, parts ...string) error {
	t.Helper()
	s := load(t)
	pointer := "api.json#"
	for _, part := range parts {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
	}
	s.mu.Lock()
	schema, err := s.compiler.Compile(pointer)
	s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

// Answer reports what of an answer the document does not have: its status, its media type, its body, unless
// that is empty. It returns the operation, as in GET /api/v1/jobs/{job}; "": the document has none for the
// path, which is without the prefix of the server.
func Answer(t testing.TB, method, path string, status int, kind, body string) string {
	t.Helper()
	s := load(t)
	path, _, _ = strings.Cut(path, "?")
	_, pattern := s.mux.Handler(&http.Request{Method: method, URL: &url.URL{Path: path}})
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		return ""
	}
	where, code := []string{"paths", path, strings.ToLower(method), "responses"}, strconv.Itoa(status)
	answer, ok := s.Paths[path][strings.ToLower(method)].Responses[code]
	if !ok {
		t.Errorf("%s: the status %d is not in the document: %s", pattern, status, body)
		return pattern
	}
	kind, _, _ = strings.Cut(kind, ";")
	if answer.Ref != "" {
		where, code = []string{"components", "responses"}, answer.Ref[strings.LastIndex(answer.Ref, "/")+1:]
	} else if _, ok := answer.Content[kind]; !ok && kind != "" {
		t.Errorf("%s: %d of the type %s is not in the document", pattern, status, kind)
		return pattern
	}
	if !strings.HasSuffix(kind, "json") {
		return pattern
	}
	where = append(where, code, "content", kind, "schema")
	texts := []string{body}
	if kind == "application/x-ndjson" {
		texts = strings.Split(strings.TrimSpace(body), "\n")
	}
	for _, text := range texts {
		if text == "" {
			break
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = Validate(t, value, where...)
		}
		if err != nil {
			t.Errorf("%s: %d: %v\n%s", pattern, status, err, text)
			break
		}
	}
	return pattern
}
