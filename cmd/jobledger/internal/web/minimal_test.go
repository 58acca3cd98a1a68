package web

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands/commandstest"
	"jobledger/commands/remote/wire"
)

// An answer that a client prefers to be minimal is the whole one without what says nothing, and a client
// reads the same jobs from both.
func TestMinimalAnswers(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	token := s.create("all", []string{"*"}, access.Enqueue, access.Work)
	ask := func(method, path, kind, body, prefer string) (*http.Response, []byte) {
		t.Helper()
		answer, text := s.exchange(method, path, kind, body, "Authorization", token, "Prefer", prefer)
		return answer, []byte(text)
	}
	const id, boot = "01KDXYZAF8000000000000000J", "01KDXYZAF8000000000000B00T"
	const claim, other = "01KDXYZAF800000000000000T1", "01KDXYZAF800000000000000T2"
	full := `{"id":"` + id + `","queue":"q","payload":"a","priority":3,"tags":{"customer":"17"},"key":"k",` +
		`"max_runtime":"1m","requires":["gpu"],"version":"v2","group":"g",` +
		`"backoff":"min 1s, max 1m, factor 2"}`
	turn := `{"queues":["q"],"worker":"w","boot":"` + boot + `","version":"v2","capabilities":["gpu"],` +
		`"tokens":["` + claim + `"],"lease":600`
	for _, request := range []struct {
		method, path, kind, body string
	}{
		{"POST", "/jobs", jsonKind, full},
		{"PUT", "/jobs/01KDXYZAF8000000000000000K", jsonKind, `{"queue":"mail"}`},
		{"POST", "/jobs", "application/x-ndjson", `{"queue":"mail","key":"1","payload":{"a":1}}` + "\n" +
			`{"queue":"mail","key":"2","run_at":"2030-01-02T03:04:05Z"}` + "\n"},
		{"POST", "/queues/mail/jobs?key=raw&tag=a=b", "application/octet-stream", "\xff\x00"},
		{"POST", "/claims", jsonKind, turn + `}`},
		{"GET", "/claims?boot=" + boot, "", ""},
		{"POST", "/claims", jsonKind, `{"boot":"` + boot + `","heartbeats":[{"job":"` + id + `","token":"` + claim +
			`","progress":0,"note":"n"},{"job":"` + id + `","token":"` + other + `"}]}`},
		{"PUT", "/jobs/" + id + "/claims/" + claim + "/process", jsonKind,
			`{"worker":"w","boot":"` + boot + `"}`},
		{"PUT", "/jobs/" + id + "/claims/" + claim, jsonKind,
			`{"outcome":"failed","code":"c","detail":"d","no_retry":true}`},
		{"POST", "/claims", jsonKind, `{"outcomes":[{"job":"` + id + `","token":"` + claim +
			`","outcome":"failed","code":"c","detail":"d","no_retry":true}]}`},
	} {
		ask(request.method, request.path, request.kind, request.body, "") // so that both find the same
		a, all := ask(request.method, request.path, request.kind, request.body, "return=representation")
		b, few := ask(request.method, request.path, request.kind, request.body, "wait=1, Return=Minimal; x=1")
		if a.StatusCode != 200 || b.StatusCode != 200 || a.Header.Get("Preference-Applied") != "" ||
			b.Header.Get("Preference-Applied") != "return=minimal" {
			t.Errorf("%s %s: %s %q, minimal %s %q\n%s", request.method, request.path, a.Status,
				a.Header.Get("Preference-Applied"), b.Status, b.Header.Get("Preference-Applied"), all)
			continue
		}
		var want, got any
		if json.Unmarshal(all, &want) != nil || json.Unmarshal(few, &got) != nil || len(few) > len(all)-80 {
			t.Fatalf("%s\nis not shorter, or not JSON:\n%s", few, all)
		}
		w, g := jobsOf(t, want), jobsOf(t, got)
		if len(w) == 0 || len(w) != len(g) {
			t.Fatalf("%d jobs, minimal %d\n%s\n%s", len(w), len(g), all, few)
		}
		for i := range w {
			full, short := w[i], g[i]
			for _, moves := range []string{"seq", "heartbeat_at"} { // a heartbeat, and process, are events each time
				if _, has := short[moves]; has {
					short[moves] = full[moves]
				}
			}
			for name, value := range full {
				empty := value == nil || reflect.ValueOf(value).IsZero() || name == "job"
				if list, ok := value.([]any); ok && len(list) == 0 {
					empty = true
				}
				if of, ok := value.(map[string]any); ok && len(of) == 0 {
					empty = true
				}
				if name == "progress" && value != nil {
					empty = false // 0 is not null
				}
				if _, is := short[name]; is == empty || is && !reflect.DeepEqual(short[name], value) {
					t.Errorf("%s %s: %s is %v, minimal %v", request.method, request.path, name, value, short[name])
				}
			}
			for name := range short {
				if _, is := full[name]; !is {
					t.Errorf("%s %s: only the minimal answer has %s", request.method, request.path, name)
				}
			}
			if one, other := projected(t, full), projected(t, short); !reflect.DeepEqual(one, other) {
				t.Errorf("%s %s: a client reads\n%+v, minimal\n%+v", request.method, request.path, one, other)
			}
		}
	}
	refused, _ := ask("POST", "/jobs", jsonKind, `{"queue":""}`, wire.PreferMinimal)
	if refused.StatusCode != 400 || refused.Header.Get("Preference-Applied") != "" {
		t.Errorf("a refusal: %s, %v", refused.Status, refused.Header)
	}
	commandstest.Verify(t, s.Store)
}

// jobsOf returns all objects within v that are jobs.
func jobsOf(t *testing.T, v any) (jobs []map[string]any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			jobs = append(jobs, jobsOf(t, one)...)
		}
	case map[string]any:
		if _, is := v["id"]; is {
			return []map[string]any{v}
		}
		for _, name := range []string{"items", "claims", "outcomes", "heartbeats", "job"} {
			jobs = append(jobs, jobsOf(t, v[name])...)
		}
	}
	return jobs
}

// projected is the job that a client of package remote reads from an answer.
func projected(t *testing.T, job map[string]any) any {
	t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	var answer wire.JobAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	j, err := answer.Projection()
	if err != nil {
		t.Fatal(err)
	}
	return []any{j, answer.Existing, answer.Replaced}
}
