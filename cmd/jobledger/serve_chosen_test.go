package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
)

// An act on jobs that are named one by one, by the API or by the boxes of the page, is about these alone, as
// they were at a position: one that changed since is left as it is and named.
func TestActsOnChosenJobs(t *testing.T) {
	s := newScenario(t)
	var ids []event.JobID
	for i := range 6 {
		ids = append(ids, s.enqueue(commands.Enqueue{Queue: "mail", Key: fmt.Sprint(i)}).ID)
	}
	other := s.enqueue(commands.Enqueue{Queue: "render"}).ID
	served := serveStore(t, s.Store, noon)
	post := poster(t, served)
	_, err := s.Cancel(t.Context(), "cli:test", ids[1], "by hand") // pos 8
	check(t, err)
	named := func(jobs ...event.JobID) string {
		var list []string
		for _, id := range jobs {
			list = append(list, `{"id":"`+string(id)+`"}`)
		}
		return `"jobs":[` + strings.Join(list, ",") + `]`
	}
	late := s.enqueue(commands.Enqueue{Queue: "mail"}).ID // pos 9
	for _, c := range []struct {
		body string
		want int
		text string
	}{
		{`{"act":"cancel",` + named(ids[0]) + `,"filter":{"queue":["mail"]},"at":"pos:7"}`, 400,
			"cannot be combined"},
		{`{"act":"cancel",` + named(ids[0], ids[0]) + `,"at":"pos:7"}`, 400, "named twice"},
		{`{"act":"cancel",` + named("x") + `,"at":"pos:7"}`, 400, "not the id of a job"},
		{`{"act":"cancel",` + named(ids[0][:20]) + `,"at":"pos:7"}`, 400, "not the id of a job"},
		{`{"act":"cancel",` + named(ids[0]) + `,"at":"pos:99"}`, 400, "ends at pos:9"},
		{`{"act":"cancel",` + named(late) + `,"at":"pos:7"}`, 404, "there is no job"},
		{`{"act":"cancel",` + named("01ZZZZZZZZZZZZZZZZZZZZZZZZ") + `,"at":"pos:7"}`, 404, "there is no job"},
		{`{"act":"cancel","jobs":[],"at":"pos:7"}`, 400, "a filter is one of"},
		{`{"act":"cancel","jobs":[` + strings.Repeat(`{"id":"x"},`, 1000) + `{"id":"x"}],"at":"pos:7"}`, 413,
			"use a filter"},
	} {
		if status, _, text := post("/api/v1/acts", c.body); status != c.want || !strings.Contains(text, c.text) {
			t.Errorf("%.100s: %d %s", c.body, status, text)
		}
	}
	var did struct {
		Selected, Done int
		Moved          int           `json:"moved_on"`
		Jobs           []event.JobID `json:"moved_on_jobs"`
	}
	_, _, text := post("/api/v1/acts", `{"act":"cancel",`+named(ids[0], ids[1])+`,"at":"pos:7",`+
		`"reason":"twice"}`)
	check(t, json.Unmarshal([]byte(text), &did))
	if did.Selected != 2 || did.Done != 1 || did.Moved != 1 || len(did.Jobs) != 1 || did.Jobs[0] != ids[1] {
		t.Errorf("of two, one of which has moved on: %s", text)
	}
	// The seq of a job may be given.
	_, _, text = post("/api/v1/acts", `{"act":"cancel","jobs":[{"id":"`+string(ids[2])+`","seq":7}],`+
		`"at":"pos:7"}`)
	if !strings.Contains(text, `"moved_on":1`) {
		t.Errorf("with another seq: %s", text)
	}

	// The page: the boxes alone, all that match alone, or neither.
	form := func(pairs ...string) string {
		values := url.Values{"act": {"cancel"}, "pos": {"10"}, "do": {"no"}, "f_state": {"queued"}}
		for i := 0; i < len(pairs); i += 2 {
			values[pairs[i]] = strings.Fields(pairs[i+1])
		}
		return values.Encode()
	}
	boxes := string(ids[3]) + " " + string(ids[4])
	for _, c := range []struct {
		body string
		want int
		text string
	}{
		{form("which", "these"), 400, "no job is ticked"},
		{form("which", "all", "job", boxes), 400, "choose one of the two"},
		{form("which", "some", "job", boxes), 400, "which is all or these"},
		{form("which", "all"), 200, "<strong>6</strong> can be changed now"},
		{form("which", "these", "job", boxes), 200, "<strong>2</strong> can be changed now"},
		{form("which", "these", "job", boxes, "do", "yes"), 400, "say why"},
		{form("which", "these", "job", boxes, "do", "yes", "reason", "wrong"), 200, "<strong>2</strong> done"},
		{form("which", "these", "job", boxes, "do", "yes", "reason", "wrong"), 200, "2 changed meanwhile"},
	} {
		if status, _, text := post("/acts", c.body); status != c.want || !strings.Contains(text, c.text) {
			t.Errorf("%s: %d, want %s\n%s", c.body, status, c.text, text)
		}
	}
	// A token for one queue has no job of another one.
	token, _, err := access.Create(served.access, access.Request{Name: "mail", Queues: []string{"mail"},
		Scopes: []access.Scope{access.Read, access.Operate}}, noon())
	check(t, err)
	r, err := http.NewRequestWithContext(t.Context(), "POST", served.base+"/api/v1/acts",
		strings.NewReader(`{"act":"cancel",`+named(other)+`,"at":"pos:7","reason":"x"}`))
	check(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	check(t, err)
	check(t, answer.Body.Close())
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("a job of another queue: %s", answer.Status)
	}
	want := map[event.JobID]event.State{ids[2]: event.Queued, ids[5]: event.Queued, other: event.Queued,
		ids[0]: event.CancelledState, ids[3]: event.CancelledState, ids[4]: event.CancelledState}
	for id, state := range want {
		if j, err := s.Get(t.Context(), id); err != nil || j.State != state {
			t.Errorf("job %s is %s, %v; want %s", j.Key, j.State, err, state)
		}
	}
	commandstest.Verify(t, s.Store)
}
