package projection_test

import (
	"fmt"
	"strings"
	"testing"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

func TestListFindsAwkwardTags(t *testing.T) {
	tags := []map[string]string{
		{"a": `50%_\`}, {"a": `50xx\`}, {"a": "<b>&\u2028"}, {"a": `{"b":"c"}`}, {"b": "c"}, {"b": "C"},
		{`"`: "\n\t"}, {"naïve": "日本"}, {"_": "%"}, {"x": "y"}, {"a": strings.Repeat("z", 200)},
		{"b": "c", "x": "y"},
	}
	s := &commands.Service{Store: ledgertest.Open(t)}
	for _, of := range tags {
		_, err := s.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail", Tags: of})
		if err != nil {
			t.Fatal(err)
		}
	}
	wanted := append(tags, map[string]string{"b": strings.Repeat("z", 60_000)}, map[string]string{"c": "b"})
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for _, want := range wanted {
			got, err := projection.List(t.Context(), tx, projection.Filter{Tags: want})
			if err != nil {
				return err
			}
			var found []string
			for _, j := range got {
				found = append(found, fmt.Sprint(j.N))
			}
			var expected []string
			for i := len(tags) - 1; i >= 0; i-- {
				if hasAll(tags[i], want) {
					expected = append(expected, fmt.Sprint(i+1))
				}
			}
			if strings.Join(found, " ") != strings.Join(expected, " ") {
				t.Errorf("jobs with %.80q: got %v, want %v", want, found, expected)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func hasAll(tags, want map[string]string) bool {
	for name, value := range want {
		if got, ok := tags[name]; !ok || got != value {
			return false
		}
	}
	return true
}
