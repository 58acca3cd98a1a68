package main

import (
	"errors"
	"html"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/logs"
	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker/attemptlog"
	"jobledger/ledger/event"
)

// writeLog writes the log file of an attempt, as work does.
func writeLog(t *testing.T, s *scenario, id event.JobID, attempt int, stderr bool, text string) (
	path string) {
	t.Helper()
	folder, err := logs.Folder(s.Store.Path())
	check(t, err)
	path = attemptlog.File(folder, id, attempt, stderr)
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The page of a job has what its attempts wrote: the end of each file as text, the file as a link, and which
// files are missing though something was written. Without the right to bodies it has none of it, and erasing
// the job removes the files.
func TestJobPageShowsLogs(t *testing.T) {
	t.Parallel()
	s := newScenario(t)
	s.enqueue(commands.Enqueue{Queue: "mail", Payload: []byte("a")})
	first := s.claim("w1", "mail")
	none, lines := time.Duration(0), strings.Repeat("a line before\n", 60)
	s.do("worker:w1", first, commands.Fail{Token: first.Token, Code: "exit", RetryIn: &none,
		Output: event.Output{StdoutSHA256: strings.Repeat("a", 64), StdoutBytes: 5000}})
	second := s.claim("w1", "mail")
	s.do("worker:w1", second, commands.Fail{Token: second.Token, Code: "exit", NoRetry: true,
		Output: event.Output{StderrSHA256: strings.Repeat("b", 64), StderrBytes: 100_000}})
	j, err := s.Get(t.Context(), second.ID)
	check(t, err)
	path := writeLog(t, s, j.ID, 2, true, lines+"451 <try> \x1b[2J later\n")
	writeLog(t, s, j.ID, 2, false, "a result\n")
	served := serveStore(t, s.Store, func() time.Time { return s.Now })
	get := getter(t, served)
	_, _, page := get("/jobs/" + string(j.ID))
	page = html.UnescapeString(page)
	for _, part := range []string{`href="/api/v1/jobs/` + string(j.ID) + `/logs/2/err" download`,
		`>2.out</a> 9 bytes`,
		"of 97.7 KiB (100000 bytes) that were written", `451 <try> \x1b[2J later`, "Its last lines",
		"<pre>a result</pre>", "1.out <span class=\"quiet\">4.9 KiB (5000 bytes) were written on host build7"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %q", part)
		}
	}
	if n := strings.Count(page, "a line before"); n != 39 || strings.Contains(page, "1.err") ||
		strings.Count(page, "<details open>") != 2 {
		t.Errorf("%d lines before the last one, want 39; no 1.err; one log and the payload are open:\n%s", n, page)
	}
	status, _, text := get("/api/v1/jobs/" + string(j.ID) + "/logs/2/err")
	if status != http.StatusOK || !strings.HasPrefix(text, lines) {
		t.Errorf("the file behind the link: %d, %d bytes", status, len(text))
	}
	if _, _, then := get("/jobs/" + string(j.ID) + "?at=pos:3"); strings.Contains(then, ">2.out<") ||
		!strings.Contains(then, "are as they are now") {
		t.Errorf("the page after the first attempt has logs of the second:\n%s", then)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.base+"/jobs/"+string(j.ID), nil)
	check(t, err)
	r.Header.Set("Authorization", served.tokenFor(t, access.Read))
	answer, err := http.DefaultClient.Do(r)
	check(t, err)
	if text := readAll(t, answer); strings.Contains(text, "/logs/") || strings.Contains(text, "a line before") ||
		!strings.Contains(text, "logs need the right to bodies") {
		t.Errorf("without the right to bodies the page has\n%s", text)
	}
	check(t, answer.Body.Close())

	r, err = http.NewRequestWithContext(t.Context(), http.MethodPost,
		served.base+"/api/v1/jobs/"+string(j.ID)+"/erase", strings.NewReader(`{"reason":"gdpr"}`))
	check(t, err)
	r.Header.Set("Authorization", served.tokenFor(t, access.Read, access.Erase))
	r.Header.Set("Content-Type", "application/json")
	answer, err = http.DefaultClient.Do(r)
	check(t, err)
	if text := readAll(t, answer); answer.StatusCode != http.StatusOK {
		t.Errorf("erase: %s %s", answer.Status, text)
	}
	check(t, answer.Body.Close())
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the job is erased, and its log is there: %v", err)
	}
	commandstest.Verify(t, s.Store)
}
