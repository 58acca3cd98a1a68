package query_test

import (
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// TestFindingsHostWithOthers: a host whose other worker lived on has not fallen silent, even if only one
// of its workers, or one queue, is asked for.
func TestFindingsHostWithOthers(t *testing.T) {
	s := night(t)
	found := make(map[string]string)
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		from, err := projection.AtTime(t.Context(), tx, time.Date(2026, 3, 14, 23, 30, 0, 0, time.UTC))
		if err != nil {
			return err
		}
		to, err := projection.AtTime(t.Context(), tx, time.Date(2026, 3, 15, 4, 0, 0, 0, time.UTC))
		if err != nil {
			return err
		}
		for _, asked := range []query.Span{{}, {Worker: "alpha-render"}, {Queue: "render"},
			{Worker: "charlie-mail"}} {
			span := query.Lanes{Span: asked, Columns: 1200}
			span.From, span.To = from, to
			lanes, err := span.Read(t.Context(), tx)
			if err != nil {
				return err
			}
			findings, err := query.Findings{span, lanes}.Read(t.Context(), tx)
			if err != nil {
				return err
			}
			for _, f := range findings {
				if f.Kind == "silent" || f.Kind == "dead_host" {
					found[span.Worker+span.Queue+": "+f.Host+strings.Join(f.Workers, " ")] = f.Kind
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, kind := range map[string]string{
		": charliecharlie-mail charlie-render": "dead_host",
		": alpha-render":                       "silent",
		"alpha-render: alpha-render":           "silent",
		"render: alpha-render":                 "silent",
		"render: bravo-render":                 "silent",
	} {
		if found[text] != kind {
			t.Errorf("%s: %q, want %q", text, found[text], kind)
		}
	}
	if t.Failed() {
		t.Log(found)
	}
}
