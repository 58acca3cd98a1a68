package joblines

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/commands"
	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

// A line that is accepted as a job can be enqueued, keeps all of its fields, and does not change the flags
// that apply to every line.
func FuzzJobLine(f *testing.F) {
	for _, seed := range []string{
		`{"payload": {"to":  "ada", "n": 1.50}, "key": "a-1", "tags": {"x": "1"}}`,
		`{"payload": null, "key": null}`, `{"payload":"\ud83d\ude00\u0000"}`,
		`{"queue": "sms", "priority": 5, "max_attempts": 2, "max_runtime": "1m", "version": "v2", ` +
			`"requires": ["gpu"], "run_at": "+10m"}`,
		`{"payload":"\ud800"}`, `{"key":""}`, `{"tags":{"a":"1","a":"2"}}`, `{"tags":{"a":null}}`,
		`{"payload":1,"payload":2}`, `{"priority":1e1}`,
		`{"delay":"5"}`, `{}{}`, `{} x`, `{`, `[]`, `null`, `{"requires":[null]}`, "{\"key\":\"\xff\"}",
		`{"payload":NaN}`, `{"max_runtime":"0s"}`, `{"tags":{"a":{"b":1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		defaults := commands.Enqueue{Queue: "mail", Priority: 3, Requires: []string{"cpu"},
			Tags: map[string]string{"batch": "7"}}
		lines := Reader{Defaults: defaults, Now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
		e, err := lines.job(slices.Clone(line))
		if defaults.Tags["batch"] != "7" || len(defaults.Tags) != 1 || defaults.Requires[0] != "cpu" {
			t.Fatalf("%s has changed the defaults: %+v", line, defaults)
		}
		if err != nil {
			if code, why, _ := fault.Explain(err); code != fault.ExitUsage || why == "" {
				t.Fatalf("%s: exit code %d, %q", line, code, why)
			}
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("not JSON: %s: %v", line, err)
		}
		if err := e.Check(); err != nil {
			t.Fatalf("%s is read as what cannot be enqueued: %v", line, err)
		}
		for name, raw := range fields {
			if string(raw) != "null" || name == "payload" {
				keepsField(t, e, name, raw)
			}
		}
	})
}

// keepsField checks that e has exactly what raw says under name.
func keepsField(t *testing.T, e commands.Enqueue, name string, raw json.RawMessage) {
	t.Helper()
	texts := map[string]string{"queue": e.Queue, "key": e.Key, "version": e.Version}
	got, isText := texts[name]
	if name == "payload" && raw[0] == '"' {
		got, isText = string(e.Payload), true
	}
	switch {
	case isText:
		again, err := json.Marshal(got)
		var want, back string
		if json.Unmarshal(raw, &want) != nil || err != nil || json.Unmarshal(again, &back) != nil || got != want ||
			back != want || got == "" && name != "payload" {
			t.Fatalf("%s %s is read as %q", name, raw, got)
		}
		if strings.ContainsRune(got, utf8.RuneError) && !strings.ContainsRune(string(raw), utf8.RuneError) &&
			!strings.Contains(strings.ToLower(string(raw)), `\ufffd`) {
			t.Fatalf("%s %s is read as %q: something was lost", name, raw, got)
		}
	case name == "payload":
		if string(e.Payload) != string(raw) {
			t.Fatalf("payload %s is read as %s", raw, e.Payload)
		}
	case name == "priority":
		if strconv.Itoa(e.Priority) != strings.TrimPrefix(string(raw), "-0") && string(raw) != "-0" {
			t.Fatalf("priority %s is read as %d", raw, e.Priority)
		}
	case name == "tags":
		var tags map[string]string
		if err := json.Unmarshal(raw, &tags); err != nil {
			t.Fatal(err)
		}
		if _, ours := tags["batch"]; !ours {
			tags["batch"] = "7"
		}
		if !maps.Equal(tags, e.Tags) {
			t.Fatalf("tags %s are read as %v", raw, e.Tags)
		}
	case name == "requires":
		var labels []string
		if err := json.Unmarshal(raw, &labels); err != nil || !slices.Equal(labels, e.Requires) {
			t.Fatalf("requires %s is read as %v, %v", raw, e.Requires, err)
		}
	}
}
