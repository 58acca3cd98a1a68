package page

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/find"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/view"
)

// tabView leads to the jobs of one state that the filter selects, or of all states.
type tabView struct {
	Name, Href string
	Count      string // of jobs now, where only the queue is asked for besides; ""
	Chosen     bool
}

// tabsOf are the tabs of the page for query; figures are nil where they are not of the moment of the page.
func tabsOf(path string, query url.Values, figures *view.Figures) (tabs []tabView) {
	with := api.Cloned(query)
	with.Del("limit")
	plain := figures != nil
	for name := range with {
		plain = plain && (name == "state" || name == "queue")
	}
	counts := make(map[string]int64)
	if plain {
		for _, q := range figures.Queues {
			if queues := query["queue"]; len(queues) > 0 && !slices.Contains(queues, q.Name) {
				continue
			}
			for state, n := range q.Jobs {
				counts[state.String()] += n
				counts[""] += n
			}
		}
	}
	for _, state := range append([]string{""}, find.StateNames()...) {
		t := tabView{Name: "all", Chosen: strings.Join(query["state"], " ") == state}
		if with.Del("state"); state != "" {
			t.Name = state
			with.Set("state", state)
		}
		if plain {
			t.Count = strconv.FormatInt(counts[state], 10)
		}
		t.Href = path + "?" + with.Encode()
		tabs = append(tabs, t)
	}
	return tabs
}

// chipView is a part of the filter, and the address of the page without it.
type chipView struct{ Text, Href string }

// chipsOf are the parts of the filter of query.
func chipsOf(path string, query url.Values) (chips []chipView) {
	without := func(name string, i int, rest ...string) string {
		q := api.Cloned(query)
		q.Del("limit")
		if q[name] = append(slices.Delete(slices.Clone(q[name]), i, i+1), rest...); len(q[name]) == 0 {
			q.Del(name)
		}
		if !q.Has("from") && !q.Has("to") {
			q.Del("by") // it is about these
		}
		return path + "?" + q.Encode()
	}
	for _, name := range find.JobFields {
		for i, value := range query[name] {
			terms, err := find.Terms(value)
			if name != "find" || err != nil {
				chips = append(chips, chipView{name + ": " + value, without(name, i)})
				continue
			}
			texts := make([]string, len(terms))
			for j, t := range terms {
				texts[j] = t.String()
			}
			for j, text := range texts {
				var rest []string
				if others := slices.Delete(slices.Clone(texts), j, j+1); len(others) > 0 {
					rest = []string{strings.Join(others, " ")}
				}
				chips = append(chips, chipView{text, without(name, i, rest...)})
			}
		}
	}
	return chips
}
