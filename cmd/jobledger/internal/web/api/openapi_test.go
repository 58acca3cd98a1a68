package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/door"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// Each route of this package for programs is in the document, and both have the same parameters. That each
// path of the document is a route is a test of package web.
func TestOpenAPIHasTheRoutes(t *testing.T) {
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			Security   *[]any
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(Document, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("the document: %q, %v", doc.OpenAPI, err)
	}
	want := map[string][]string{Root + "/events/stream": StreamParams, Root + "/moments": MomentParams,
		Root + "/incident": IncidentParams}
	want[Root+"/queues/{queue}"], want[Root+"/depth"] = []string{"at"}, DepthParams
	want[Root+"/lanes"], want[Root+"/failures"] = LaneParams, FailureParams
	want[Root+"/series"], want[Root+"/diff"] = SeriesParams, DiffParams
	want[Root+"/jobs/{job}/payload"], want[Root+"/jobs/{job}/result"] = BodyParams, BodyParams
	want[Root+"/ledger"] = LedgerParams
	for _, res := range Resources {
		want[Root+res.Path] = res.Params
	}
	routes := 0
	for _, rt := range append(door.New(door.Config{}).HealthRoutes(), New(Config{}).Routes()...) {
		method, path, _ := strings.Cut(rt.Pattern, " ")
		if !strings.HasPrefix(path, Root) && !slices.Contains([]string{"/metrics", "/healthz", "/readyz"},
			path) {
			continue
		}
		routes++
		operation, ok := doc.Paths[path][strings.ToLower(method)]
		if !ok {
			t.Errorf("the document does not have %s", rt.Pattern)
			continue
		}
		if isOpen := operation.Security != nil && len(*operation.Security) == 0; isOpen != (rt.Needs == door.None) {
			t.Errorf("%s needs no credential: %t in the document", rt.Pattern, isOpen)
		}
		var params []string
		for _, p := range operation.Parameters {
			if p.In == "query" {
				params = append(params, p.Name)
			}
		}
		slices.Sort(params)
		if expected := slices.Sorted(slices.Values(want[path])); !slices.Equal(params, expected) {
			t.Errorf("%s has the parameters %v, and in the document %v", rt.Pattern, expected, params)
		}
	}
	if routes < 10 {
		t.Errorf("%d routes", routes)
	}
}

func TestLabelsAreEscaped(t *testing.T) {
	var m exposition
	m.sample("x", 1, "queue", "a\"b\\c\nd")
	if want := `x{queue="a\"b\\c\nd"} 1` + "\n"; m.String() != want {
		t.Errorf("escaped: %s, want %s", m.String(), want)
	}
}
