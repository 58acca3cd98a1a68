package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/projection/query"
)

// Series are of the metrics and in the step that are asked for; all of them, in 120 steps, otherwise.
func TestSeriesByMetricAndStep(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	from := s.Now.UTC()
	s.turns(4, 10*time.Minute)
	s.wait(time.Hour)
	_, fetch := serveOn(t, s.Store, func() time.Time { return s.Now })
	get := func(path string) string {
		_, _, text := fetch(path)
		return text
	}
	window := "/api/v1/series?queue=mail&from=" + from.Format(time.RFC3339) + "&to=" +
		from.Add(time.Hour).Format(time.RFC3339)
	read := func(more string) (series map[string]json.RawMessage) {
		t.Helper()
		check(t, json.Unmarshal([]byte(get(window+more)), &series))
		return series
	}
	sum := func(values json.RawMessage) (n int64, points int) {
		t.Helper()
		var list []int64
		check(t, json.Unmarshal(values, &list))
		for _, v := range list {
			n += v
		}
		return n, len(list)
	}
	all := read("")
	total, points := sum(all["succeeded"])
	if len(all) != len(query.Metrics)+2 || points != 120 || string(all["step"]) != "30" || total != 2 {
		t.Fatalf("all of them: %d, %d points of %s", len(all), points, all["step"])
	}
	for _, name := range query.Metrics {
		if all[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	for step, want := range map[string]int{"10s": 360, "5m": 12, "7m": 9, "2h": 1} {
		some := read("&metric=succeeded&metric=wait_p90&step=" + step)
		got, points := sum(some["succeeded"])
		if len(some) != 4 || some["wait_p90"] == nil || got != total || points != want {
			t.Errorf("step %s: %d of %d in %d points, want %d; %d fields", step, got, total, points, want, len(some))
		}
	}
	for asked, says := range map[string][]string{"metric=speed": append(slices.Clone(query.Metrics), "speed"),
		"step=0s": {"step"}, "step=fast": {"step"},
		"from=2025-12-01T00:00Z&to=2025-12-15T00:00Z&step=1s": {"at least 2m1s"}} {
		status, _, text := fetch("/api/v1/series?" + asked)
		if field := fmt.Sprintf("%q:%q", "field", strings.SplitN(asked, "=", 2)[0]); status != 400 ||
			!strings.Contains(text, field) && !strings.Contains(text, `"field":"step"`) {
			t.Errorf("%s: %d %s", asked, status, text)
		}
		for _, word := range says {
			if !strings.Contains(text, word) {
				t.Errorf("%s does not say %s: %s", asked, word, text)
			}
		}
	}
}
