package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/commandstest"
)

// fuzzed answers requests of the user who runs the server, without a connection.
func fuzzed(f *testing.F) (answer func(t *testing.T, method, path, kind string, body []byte) int,
	service *commands.Service) {
	scenario := commandstest.New(f)
	scenario.Store.Now = time.Now
	s := New(Config{Config: door.Config{Store: scenario.Store, Now: time.Now, Owner: "cli:ada@build7"}})
	handler := s.door.Handler()
	return func(t *testing.T, method, path, kind string, body []byte) int {
		r := httptest.NewRequestWithContext(door.AsOwner(t.Context()), method, api.Root+path, bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		var w recorder
		handler.ServeHTTP(&w, r)
		if w.status >= http.StatusInternalServerError {
			t.Errorf("%s %s %q: %d %s", method, path, body, w.status, w.body.Bytes())
		}
		return w.status
	}, s.work.Service
}

// Whatever the body of a claim is, it is carried out or refused, and the ledger is as it should be.
func FuzzClaims(f *testing.F) {
	answer, service := fuzzed(f)
	job, err := service.Enqueue(f.Context(), "cli:test", commands.Enqueue{Queue: "mail", Payload: []byte("a")})
	if err != nil {
		f.Fatal(err)
	}
	head := `{"queues":["mail"],"worker":"w","boot":"b","tokens":["01KDXYZAF8000000000000000A"]`
	for _, seed := range []string{head + "}", head + `,"lease":60,"max_runtime":null,"version":"v2"}`,
		head + `,"capabilities":["gpu"],"host":"web3","pid":811}`, head + `,"wait":-1}`, head + `,"wait":1e400}`,
		head + `,"lease":9223372036854775807}`, head + `,"lease":"60"}`, head + `,"tokens":["a","a"]}`,
		fmt.Sprintf(`{"outcomes":[{"job":%q,"token":"01KDXYZAF8000000000000000A","outcome":"succeeded",`+
			`"result":"ok"}]}`, job[0].ID),
		fmt.Sprintf(`{"lease":60,"heartbeats":[{"job":%q,"token":"01KDXYZAF8000000000000000A"}]}`, job[0].ID),
		`{"outcomes":[{"job":"` + "\x00" + `","token":"","outcome":"failed","retry_in":-1}]}`,
		`[]`, `null`, `{"a":1}`, `{"queues":null,"queues":[]}`, "\xff", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.Contains(body, []byte("wait")) {
			body = bytes.ReplaceAll(body, []byte(`"wait":`), []byte(`"wait":0e1`)) // it would wait
		}
		if answer(t, "POST", "/claims", jsonKind, body) != http.StatusOK {
			return
		}
		commandstest.Verify(t, service.Store)
	})
}

// Whatever new jobs are, they are recorded or refused, and the ledger is as it should be.
func FuzzEnqueue(f *testing.F) {
	answer, service := fuzzed(f)
	for _, seed := range []string{`{"queue":"mail"}`,
		`{"queue":"mail","payload":"x","key":"k","tags":{"a":"b"}}`,
		`{"queue":"mail","payload_base64":"AA=="}`, `{"queue":"mail","run_at":"-1h"}`,
		`{"queue":"mail","run_at":"2026-03-15T01:05:57Z","max_attempts":3,"backoff":"1s..1h"}`,
		`{"queue":"mail","priority":9223372036854775807}`, `{"queue":"mail","delay":"1e9h"}`,
		`{"queue":"mail","id":"01KDXYZAF8000000000000000A","after":["01KDXYZAF8000000000000000B"]}`,
		`{"queue":"mail"}` + "\n" + `{"queue":"mail"}`, `{"queue":"mail","requires":["gpu"],"group":"g"}`,
		`{"queue":"Mail"}`, `{}`, "\xff", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		one := answer(t, "POST", "/jobs", jsonKind, body)
		all := answer(t, "POST", "/jobs", "application/x-ndjson", body)
		if one == http.StatusCreated || all == http.StatusCreated {
			commandstest.Verify(t, service.Store)
		}
	})
}
