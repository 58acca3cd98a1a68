package web

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Each route for programs is in the document, each path of the document is a route, and both have the same
// parameters.
func TestOpenAPIHasTheRoutes(t *testing.T) {
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Security   *[]any
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(document, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("the document: %q, %v", doc.OpenAPI, err)
	}
	want := map[string][]string{apiRoot + "/events/stream": streamParams}
	for _, res := range resources {
		want[apiRoot+res.path] = res.params
	}
	routes := 0
	for _, rt := range New(Config{}).routes {
		method, path, _ := strings.Cut(rt.pattern, " ")
		if !strings.HasPrefix(path, apiRoot) && !slices.Contains([]string{"/metrics", "/healthz", "/readyz"},
			path) {
			continue
		}
		routes++
		operation, ok := doc.Paths[path][strings.ToLower(method)]
		if !ok || len(doc.Paths[path]) != 1 {
			t.Errorf("the document does not have %s, or more of it", rt.pattern)
			continue
		}
		if isOpen := operation.Security != nil && len(*operation.Security) == 0; isOpen != (rt.access == open) {
			t.Errorf("%s needs no credential: %t in the document", rt.pattern, isOpen)
		}
		var params []string
		for _, p := range operation.Parameters {
			if p.In == "query" {
				params = append(params, p.Name)
			}
		}
		slices.Sort(params)
		if expected := slices.Sorted(slices.Values(want[path])); !slices.Equal(params, expected) {
			t.Errorf("%s has the parameters %v, and in the document %v", rt.pattern, expected, params)
		}
	}
	if routes != len(doc.Paths) || routes < 10 {
		t.Errorf("%d routes, and %d paths in the document", routes, len(doc.Paths))
	}
}
