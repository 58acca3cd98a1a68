package main

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/commands"
)

// tokenFor makes a token for these scopes and all queues.
func (s servedStore) tokenFor(t testing.TB, scopes ...access.Scope) (header string) {
	t.Helper()
	return s.tokenOf(t, []string{"*"}, scopes...)
}

// tokenOf makes a token for these scopes and queues.
func (s servedStore) tokenOf(t testing.TB, queues []string, scopes ...access.Scope) (header string) {
	t.Helper()
	name := strings.Trim(strings.Join(queues, "."), "*")
	for _, scope := range scopes {
		name += string(scope) + "."
	}
	token, _, err := access.Create(s.access, access.Request{Name: name, Scopes: scopes, Queues: queues}, noon())
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + token
}

// whole reads an answer; of a stream, up to the event at pos, and of a zip file the files.
func whole(t *testing.T, answer *http.Response, pos int64) string {
	t.Helper()
	var text strings.Builder
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		lines, last := bufio.NewScanner(answer.Body), false
		for lines.Scan() && (!last || lines.Text() != "") {
			text.WriteString(lines.Text() + "\n")
			last = last || strings.HasPrefix(lines.Text(), fmt.Sprintf("id: %d.", pos))
		}
		return text.String()
	}
	body, err := io.ReadAll(answer.Body)
	check(t, err)
	if answer.Header.Get("Content-Type") != "application/zip" {
		return string(body)
	}
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	check(t, err)
	for _, f := range z.File {
		r, err := f.Open()
		check(t, err)
		_, err = io.Copy(&text, r)
		check(t, err)
		check(t, r.Close())
	}
	return text.String()
}

// A token without the scope bodies gets no payload and no result: not at any address that is read, now or as
// of a moment, nor in the answer to an act.
func TestServeHidesBodies(t *testing.T) {
	s := newScenario(t)
	const payload, result, planned, detail = "kept-from-readers-1", "kept-from-readers-2", "kept-from-readers-3",
		"shown to readers"
	begun := s.Now
	done := s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte(payload), Key: "a"})
	claim := s.claim("w1", "mail")
	s.do("worker:w1", claim, commands.Succeed{Token: claim.Token, Result: []byte(result)})
	s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte(payload)})
	claim = s.claim("w1", "mail")
	s.do("worker:w1", claim, commands.Fail{Token: claim.Token, Code: "e", Detail: detail, NoRetry: true})
	waits := s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte(payload)})
	s.wait(time.Minute)
	if code, _, text := s.run(0, "schedule", "set", "nightly", "--queue", "mail", "--every", "1h",
		planned); code != 0 {
		t.Fatal(text)
	}
	tail := s.Tail()
	serving := serveStore(t, s.Store, func() time.Time { return s.Now })
	var document struct {
		Paths map[string]map[string]any
	}
	check(t, json.Unmarshal(api.Document, &document))
	paths := serving.pages
	for path, operations := range document.Paths {
		if operations["get"] != nil {
			paths = append(paths, path)
		}
	}
	window := fmt.Sprintf("from=%s&to=pos:%d", begun.UTC().Add(-time.Minute).Format(time.RFC3339), tail)
	var addresses []string
	for _, path := range paths {
		path = strings.NewReplacer("{job}", string(done.ID), "{queue}", "mail", "{worker}", "w1", "{pos}",
			fmt.Sprint(tail), "{attempt}", "1", "{report}", "causes", "{stream}", "out").Replace(path)
		switch {
		case strings.HasSuffix(path, "/stream"):
			addresses = append(addresses, path+"?after=0")
		default:
			addresses = append(addresses, path, path+fmt.Sprintf("?at=pos:%d", tail), path+"?"+window)
		}
	}
	addresses = append(addresses, "/tail/stream?after=0", "/api/v1/incident?bodies=true&"+window,
		"/api/v1/jobs/"+string(waits.ID), "/jobs/"+string(waits.ID))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	defer client.CloseIdleConnections()
	ask := func(method, address, body, token string) (status int, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, serving.base+address, strings.NewReader(body))
		check(t, err)
		r.Header.Set("Authorization", token)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		answer, err := client.Do(r)
		check(t, err)
		defer answer.Body.Close()
		return answer.StatusCode, whole(t, answer, tail)
	}
	secrets := []string{payload, result, planned}
	reads, sees := serving.tokenFor(t, access.Read), serving.tokenFor(t, access.Read, access.Bodies)
	answered := 0
	shown := make(map[string][]string) // by what is in their answers, addresses that show it with bodies
	for _, address := range addresses {
		status, text := ask("GET", address, "", reads)
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s to a token that only reads", address, secret)
			}
		}
		if status == http.StatusOK {
			answered++
		}
		if strings.HasSuffix(address, "/claims") || strings.HasSuffix(address, "/claims/ready") {
			continue
		}
		_, text = ask("GET", address, "", sees)
		for _, secret := range append(secrets, detail) {
			if strings.Contains(text, secret) {
				shown[secret] = append(shown[secret], address)
			}
		}
	}
	if answered < 40 {
		t.Errorf("%d of %d addresses answered", answered, len(addresses))
	}
	for what, least := range map[string]int{payload: 8, result: 6, planned: 3, detail: 5} {
		if len(shown[what]) < least {
			t.Errorf("with bodies %s is at %v", what, shown[what])
		}
	}
	if _, text := ask("GET", "/api/v1/jobs?state=failed", "", reads); !strings.Contains(text, detail) {
		t.Errorf("a token that reads does not see the detail of an error: %s", text)
	}
	if _, text := ask("GET", "/api/v1/jobs/"+string(done.ID), "", reads); strings.Contains(text, `"result`) ||
		!strings.Contains(text, `"state":"succeeded"`) {
		t.Errorf("the job without bodies: %s", text)
	}

	acts := serving.tokenFor(t, access.Read, access.Operate, access.Enqueue, access.Erase)
	for _, c := range []struct{ method, path, body string }{
		{"PUT", "/jobs/" + string(waits.ID), `{"queue":"mail","payload":"` + payload + `"}`},
		{"PUT", "/jobs/" + string(waits.ID), `{"queue":"mail","payload":"x"}`},
		{"POST", "/jobs", `{"queue":"mail","payload":"x","key":"a"}`},
		{"POST", "/jobs/" + string(waits.ID) + "/reschedule", `{"priority":3,"reason":"a"}`},
		{"POST", "/jobs/" + string(waits.ID) + "/cancel", `{"reason":"a"}`},
		{"POST", "/jobs/" + string(waits.ID) + "/retry", `{"reason":"a"}`},
		{"POST", "/jobs/" + string(done.ID) + "/retry", `{"reason":"a","succeeded":true}`},
		{"POST", "/acts", `{"act":"retry","filter":{"state":["failed"]},"at":"pos:9","reason":"a"}`},
		{"POST", "/jobs/" + string(waits.ID) + "/cancel", `{"reason":"a"}`},
		{"POST", "/jobs/" + string(waits.ID) + "/erase", `{"reason":"a"}`},
	} {
		status, text := ask(c.method, "/api/v1"+c.path, c.body, acts)
		if status >= 500 || strings.Contains(text, "kept-from") {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, text)
		}
	}
	s.Verify()
}
