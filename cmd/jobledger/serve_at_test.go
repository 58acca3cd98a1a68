package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"jobledger/commands"
)

// Everything that can be read can be read as of a moment, by a position, a time or a time ago, and is then
// what the verbs print with --as-of.
func TestServeAnswersAsOfMoments(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	begun := s.Now
	s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("first")}) // pos 1
	s.wait(time.Minute)
	done := s.enqueue(commands.Enqueue{Queue: "web", Payload: []byte("second")}) // pos 2
	s.wait(time.Minute)
	claim := s.claim("w1", "web") // pos 3
	s.do("worker:w1", claim, commands.Fail{Token: claim.Token, Code: "e", NoRetry: true})
	s.wait(time.Minute)
	s.do("cli:ada", done, commands.Retry{Reason: "again"}) // pos 5
	claim = s.claim("w1", "web")
	s.do("worker:w1", claim, commands.Succeed{Token: claim.Token, Result: []byte("sent")}) // pos 7
	now, id := s.Now, string(done.ID)
	ask, get := serveOn(t, s.Store, func() time.Time { return now })
	moments := map[string]int64{"pos:0": 0, "pos:1": 1, "pos:3": 3, "pos:7": 7, "now": 7, "-2m": 2,
		begun.Add(90 * time.Second).UTC().Format(time.RFC3339): 2}
	for at, pos := range moments {
		for path, words := range map[string]string{"/events": "events", "/events?queue=web": "events -q web",
			"/events?last=2": "events --last 2", "/jobs/" + id + "/events": "history " + id} {
			var want bytes.Buffer
			err := ask(t.Context(), &want, append(strings.Fields(words), "--json", "--as-of="+at))
			if wantNothing := want.Len() == 0; wantNothing != (err != nil) {
				t.Errorf("%s --as-of %s: %v\n%s", words, at, err, want.String())
			}
			separator := map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]
			address := "/api/v1" + path + separator + "at=" + at
			status, _, got := get(address, "Accept", "application/x-ndjson")
			if status != 200 || got != want.String() {
				t.Errorf("%s: %d\n%s, want\n%s", address, status, got, want.String())
			}
			_, header, _ := get(address)
			if status, _, _ := get(address, "If-None-Match", header.Get("ETag")); status != 304 {
				t.Errorf("%s with its tag %s: %d", address, header.Get("ETag"), status)
			}
			if last := fmt.Sprintf(`"pos":%d,`, pos); path == "/events" && pos > 0 &&
				(!strings.Contains(got, last) || strings.Count(got, "\n") != int(pos)) {
				t.Errorf("%s does not end with event %d:\n%s", address, pos, got)
			}
		}
		wantPayload, wantResult := "404 ", "404 "
		if pos >= 2 {
			wantPayload = "200 second"
		}
		if pos == 7 {
			wantResult = "200 sent"
		}
		for what, want := range map[string]string{"payload": wantPayload, "result": wantResult} {
			status, _, got := get("/api/v1/jobs/" + id + "/" + what + "?at=" + at)
			if !strings.HasPrefix(fmt.Sprint(status, " ", got), want) {
				t.Errorf("the %s as of %s: %d %s, want %s", what, at, status, got, want)
			}
		}
		var marks struct {
			Items []struct{ Pos int64 }
			Tail  int64
		}
		_, _, text := get("/api/v1/moments?at=" + at)
		check(t, json.Unmarshal([]byte(text), &marks))
		if failed := map[bool]int{true: 1}[pos >= 4]; marks.Tail != pos || len(marks.Items) != failed {
			t.Errorf("moments as of %s: %s", at, text)
		}
		var ledger struct{ Pos int64 }
		_, _, text = get("/api/v1/ledger?at=" + at)
		check(t, json.Unmarshal([]byte(text), &ledger))
		if ledger.Pos != pos {
			t.Errorf("the ledger as of %s: %s", at, text)
		}
	}
	for _, path := range []string{"/events", "/moments", "/ledger", "/jobs/" + id + "/events",
		"/jobs/" + id + "/payload", "/jobs/" + id + "/result"} {
		for _, at := range []string{"pos:8", "soon", "2100-01-01", "pos:1&at=pos:2"} {
			if status, _, text := get("/api/v1" + path + "?at=" + at); status != 400 {
				t.Errorf("%s?at=%s: %d %s", path, at, status, text)
			}
		}
	}
	for _, line := range []string{"events --follow --as-of pos:3", "history " + id + " --as-of pos:1"} {
		if code, _, text := s.run(0, strings.Fields(line)...); code == 0 {
			t.Errorf("%s: %s", line, text)
		}
	}
	if code, out, text := s.run(0, "history", id, "--as-of", "pos:3"); code != 0 ||
		!strings.Contains(out, "claimed, 2 events") || !strings.Contains(text, "as of ") {
		t.Errorf("a history that ends: %d %s%s", code, out, text)
	}
	s.Verify()
}

// A time ago means the same moment for all pages of a list: the one that it meant for the first page.
func TestPagesOfAMomentAgo(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	for range 3 {
		s.enqueue(commands.Enqueue{Queue: "mail"})
	}
	s.wait(2 * time.Minute)
	s.enqueue(commands.Enqueue{Queue: "mail"})
	now := s.Now
	_, get := serveOn(t, s.Store, func() time.Time { return now })
	for _, path := range []string{"/events", "/jobs"} {
		var page struct{ Next string }
		_, _, text := get("/api/v1" + path + "?limit=2&at=-1m")
		check(t, json.Unmarshal([]byte(text), &page))
		if !strings.Contains(page.Next, "at="+strings.ReplaceAll(now.Add(-time.Minute).UTC().
			Format("2006-01-02T15:04:05.000000Z"), ":", "%3A")) {
			t.Errorf("%s: the next page is %q", path, page.Next)
		}
		_, _, text = get(page.Next, "Accept", "application/x-ndjson")
		if strings.Count(text, "\n") != 1 {
			t.Errorf("%s: the second page\n%s", path, text)
		}
	}
	s.Verify()
}
