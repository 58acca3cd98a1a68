package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// nightOfTwo makes a ledger with what happened in the queue img-a and, with others, what happened in the
// queue secret at the same time, in part by the same workers. It returns a position of each queue.
func nightOfTwo(t *testing.T, others bool) (s *scenario, own, other int64) {
	t.Helper()
	s = newScenario(t)
	ctx := t.Context()
	sweeper := commands.Sweeper{Service: s.Service, Actor: "sweeper:build7", Grace: new(time.Duration)}
	sweep := func() {
		_, err := sweeper.Sweep(ctx)
		check(t, err)
	}
	started := func(name, version string, queues ...string) event.Worker {
		w := s.worker(name)
		w.Version = version
		check(t, s.WorkerStarted(ctx, w, queues, nil))
		return w
	}
	claim := func(w event.Worker, queue string) projection.Job {
		s.wait(time.Second)
		jobs, err := s.Claim(ctx, commands.ClaimRequest{Queues: []string{queue}, Worker: w, Lease: time.Minute})
		if err != nil || len(jobs) != 1 {
			t.Fatalf("%d claims, %v", len(jobs), err)
		}
		return jobs[0]
	}
	add := func(queue string, n int) {
		for i := range n {
			s.enqueue(commands.Enqueue{Queue: queue, Key: fmt.Sprint(queue, i)})
		}
	}
	both := started("both", "v1", "img-a", "secret")
	if others {
		add("secret", 7)
		other = s.Tail()
	}
	s.wait(time.Second)
	add("img-a", 5)
	own = s.Tail()
	s.wait(time.Second)
	if others {
		hidden := started("hidden", "hidden-v7", "secret")
		_, err := s.Pause(ctx, "cli:eve@secret", "secret", "secret reason")
		check(t, err)
		s.wait(time.Second)
		_, err = s.Resume(ctx, "cli:eve@secret", "secret", "secret reason")
		check(t, err)
		lost := claim(hidden, "secret")
		failed := claim(both, "secret")
		s.do("worker:both", failed, commands.Fail{Token: failed.Token, Code: "secret_code", Detail: "secret",
			NoRetry: true})
		s.wait(2 * time.Minute)
		sweep()
		s.do("worker:hidden", lost, commands.Succeed{Token: lost.Token, Result: []byte("secret")})
		s.do("worker:both", claim(both, "secret"), commands.Cancel{Reason: "secret"})
		// another process of the same name, for the other queue only
		second := both
		second.Boot, second.Version, second.PID = "01KDY9FY88BT0000000000ZZZZ", "hidden-v8", 777_777
		check(t, s.WorkerStarted(ctx, second, []string{"secret"}, nil))
		claim(second, "secret")
	}
	s.Now = ledgertest.Epoch.Add(10 * time.Minute)
	done := claim(both, "img-a")
	s.wait(2 * time.Second)
	s.do("worker:both", done, commands.Succeed{Token: done.Token, Result: []byte("r")})
	failed := claim(both, "img-a")
	s.do("worker:both", failed, commands.Fail{Token: failed.Token, Code: "own_code", Detail: "own detail",
		NoRetry: true})
	zombie := claim(both, "img-a")
	_, err := s.Pause(ctx, "cli:ada@build7", "img-a", "own reason")
	check(t, err)
	s.Now = ledgertest.Epoch.Add(15 * time.Minute)
	if others { // its sign of life is of a job of the other queue
		claim(both, "secret")
	}
	s.Now = ledgertest.Epoch.Add(20 * time.Minute)
	sweep()
	s.do("worker:both", zombie, commands.Succeed{Token: zombie.Token, Result: []byte("late")})
	if others {
		s.Now = ledgertest.Epoch.Add(25 * time.Minute)
		add("secret", 3)
	}
	s.Now = ledgertest.Epoch.Add(time.Hour)
	return s, own, other
}

// withoutPositions is an answer without what depends on how many events there are: positions, and numbers of
// jobs, which are positions.
func withoutPositions(t *testing.T, text string) string {
	t.Helper()
	var value any
	check(t, json.Unmarshal([]byte(text), &value))
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{"pos", "event", "last_pos", "job", "verified", "now"} {
				delete(v, name)
			}
			for _, one := range v {
				strip(one)
			}
		case []any:
			for _, one := range v {
				strip(one)
			}
		}
	}
	strip(value)
	out, err := json.Marshal(value)
	check(t, err)
	return string(out)
}

// A token for one queue gets what pictures are made of, of that queue: the answer is the same, whatever
// happens in another queue, also by the same workers.
func TestPicturesOfOneQueue(t *testing.T) {
	t.Parallel()
	type answers map[string]string
	ask := func(others bool) (all answers) {
		s, own, other := nightOfTwo(t, others)
		serving := serveStore(t, s.Store, func() time.Time { return s.Now })
		token, _, err := access.Create(serving.access, access.Request{Name: "a",
			Scopes: []access.Scope{access.Read}, Queues: []string{"img-*"}}, s.Now)
		check(t, err)
		get := func(path string) (int, http.Header, string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, serving.base+"/api/v1"+path, nil)
			check(t, err)
			r.Header.Set("Authorization", "Bearer "+token)
			answer, err := http.DefaultClient.Do(r)
			check(t, err)
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			check(t, err)
			return answer.StatusCode, answer.Header, string(body)
		}
		all = answers{}
		tail := fmt.Sprint(s.Tail())
		window := "&from=2026-01-01T00:00:00Z&to=" + s.Now.Add(-time.Minute).UTC().Format(time.RFC3339)
		for _, path := range []string{"/series", "/lanes", "/failures", "/depth"} {
			for _, query := range []string{"", window, "&from=OWN", "&at=" + event.FormatTime(
				ledgertest.Epoch.Add(11*time.Minute)), "&px=3", "&worker=both", "&worker=hidden"} {
				asked := path + "?queue=img-a" + strings.ReplaceAll(query, "OWN", fmt.Sprint("pos:", own))
				status, header, text := get(asked)
				known := map[string]string{"px": "/lanes /depth", "worker": "/lanes /failures"}[strings.Trim(
					strings.SplitN(query, "=", 2)[0], "&")]
				if known != "" && !strings.Contains(known, path) {
					continue
				}
				if status != 200 || header.Get("Jobledger-Pos") != tail {
					t.Errorf("%s: %d, pos %s of %s: %s", asked, status, header.Get("Jobledger-Pos"), tail, text)
					continue
				}
				for _, word := range []string{"secret", "hidden", "777777"} {
					if strings.Contains(text, word) {
						t.Errorf("%s: %s", asked, text)
					}
				}
				all[path+query] = withoutPositions(t, text)
				if path == "/lanes" && query == "&px=3" {
					var lanes struct{ Pos int64 }
					check(t, json.Unmarshal([]byte(text), &lanes))
					if fmt.Sprint(lanes.Pos) != tail {
						t.Errorf("%s: %d", asked, lanes.Pos)
					}
				}
			}
			for _, query := range []string{"", "?queue=secret", "?queue=imgs"} {
				if status, _, text := get(path + query); status != http.StatusForbidden {
					t.Errorf("%s%s: %d %s", path, query, status, text)
				}
			}
			if status, _, text := get(path + fmt.Sprint("?queue=img-a&from=pos:", other)); others && status != 404 {
				t.Errorf("%s from an event of another queue: %d %s", path, status, text)
			}
		}
		for _, path := range []string{"/diff?queue=img-a", "/moments?queue=img-a", "/diff", "/moments",
			"/integrity", "/incident", "/export", "/status", "/workers", "/queues"} {
			if status, _, text := get(path); status != http.StatusForbidden {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
		if status, _, text := get("/ledger?at=pos:1"); status != http.StatusForbidden {
			t.Errorf("the ledger of the past: %d %s", status, text)
		}
		status, _, text := get("/openapi.json")
		if status != 200 || !strings.Contains(text, `"openapi"`) {
			t.Errorf("the document: %d", status)
		}
		if status, _, text = get("/ledger"); status != 200 || strings.Contains(text, "last_event_at") ||
			strings.Contains(text, "erasures") ||
			strings.Contains(text, "findings") || !strings.Contains(text, `"payload_bytes"`) {
			t.Errorf("the ledger: %d %s", status, text)
		}
		all["/ledger"] = withoutPositions(t, text)
		commandstest.Verify(t, s.Store)
		return all
	}
	alone, shared := ask(false), ask(true)
	for path, want := range alone {
		if got := shared[path]; got != want {
			t.Errorf("%s with another queue: %s\nwithout: %s", path, got, want)
		}
	}
	for path, part := range map[string]string{"/lanes": `"own reason"`, "/failures": `own_code`,
		"/series": `"claimed":`, "/lanes&worker=both": `"claims":3`, "/lanes&worker=hidden": `"claims":0`} {
		if !strings.Contains(alone[path], part) {
			t.Errorf("%s: no %s in %s", path, part, alone[path])
		}
	}
	if len(alone) < 20 {
		t.Errorf("%d answers", len(alone))
	}
}
