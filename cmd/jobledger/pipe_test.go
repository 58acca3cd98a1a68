//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// piped is a jobledger pipe of a test.
type piped struct {
	site
	in  io.WriteCloser
	out *bufio.Reader
	cmd *exec.Cmd
}

func (s site) pipe() *piped {
	s.Helper()
	p := &piped{site: s, cmd: s.command("pipe")}
	var err error
	p.in, err = p.cmd.StdinPipe()
	s.ok(err)
	out, err := p.cmd.StdoutPipe()
	s.ok(err)
	p.out, p.cmd.Stderr = bufio.NewReader(out), os.Stderr
	s.ok(p.cmd.Start())
	return p
}

// pipedAnswer is a line that a pipe writes.
type pipedAnswer struct {
	ID     any
	Status int
	Body   struct {
		ID     string
		State  string
		Detail string
		Code   string
		Claims []struct{ ID, Payload, Worker, Lease_token string }
	}
	Text   string
	Base64 []byte
}

func (p *piped) say(format string, args ...any) {
	p.Helper()
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	p.ok(err)
}

func (p *piped) hear() (a pipedAnswer) {
	p.Helper()
	line, err := p.out.ReadBytes('\n')
	p.ok(err)
	if err := json.Unmarshal(line, &a); err != nil {
		p.Fatalf("%v: %s", err, line)
	}
	return a
}

// end ends the input, and waits for the exit code 0.
func (p *piped) end() {
	p.Helper()
	p.ok(p.in.Close())
	rest, err := io.ReadAll(p.out)
	p.ok(err)
	if err := p.cmd.Wait(); err != nil || len(rest) > 0 {
		p.Errorf("the pipe ended with %v and %s", err, rest)
	}
}

// TestPipeAnswersNextToAWait: while a claim waits, other requests are answered; one of them makes its job.
func TestPipeAnswersNextToAWait(t *testing.T) {
	t.Parallel()
	p := newSite(t).pipe()
	p.say(`{"id": "w", "path": "/claims", "body": {"queues": ["mail"], "wait": 60}}`)
	p.say(`{"id": {"n": 1}, "method": "get", "path": "/api/v1/status"}`)
	if a := p.hear(); fmt.Sprint(a.ID) != "map[n:1]" || a.Status != 200 {
		t.Errorf("status next to a wait: %+v", a)
	}
	p.say(`{"id": 2, "path": "/jobs", "body": {"queue": "mail", "payload": "Ada"}}`)
	both := map[string]pipedAnswer{}
	for range 2 {
		a := p.hear()
		both[fmt.Sprint(a.ID)] = a
	}
	claims := both["w"].Body.Claims
	if both["2"].Status != 201 || len(claims) != 1 || claims[0].Payload != "Ada" || claims[0].Worker == "" {
		t.Fatalf("got %+v", both)
	}
	p.say(`{"path": "/heartbeats", "body": {"claims": [{"job": "%s", "token": "%s"}]}}`, claims[0].ID,
		claims[0].Lease_token)
	if a := p.hear(); a.Status != 200 {
		t.Errorf("heartbeat: %+v", a)
	}
	p.say(`{"method": "PUT", "path": "/jobs/%s/claims/%s", "body": {"outcome": "succeeded", "result": "sent"}}`,
		claims[0].ID, claims[0].Lease_token)
	if a := p.hear(); a.Status != 200 || a.Body.State != "succeeded" {
		t.Errorf("outcome: %+v", a)
	}
	p.say(`{"path": "/jobs/%s/result"}`, claims[0].ID)
	if a := p.hear(); a.Status != 200 || a.Text+string(a.Base64) != "sent" {
		t.Errorf("result: %+v", a)
	}
	p.say(`{"id": "last", "path": "/claims", "body": {"queues": ["mail"], "wait": 60}}`)
	p.say(`{"path": "/status"}`) // the wait has begun, mostly
	p.hear()
	p.ok(p.in.Close())
	if a := p.hear(); a.ID != "last" || a.Status != 204 {
		t.Errorf("a claim that waits at the end: %+v", a)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if out := p.run("verify"); !strings.HasPrefix(out, "ok: ") {
		t.Error(out)
	}
}

// TestPipeCancelEndsARequest: a claim that is not wanted any more is withdrawn, and its job stays queued.
func TestPipeCancelEndsARequest(t *testing.T) {
	t.Parallel()
	p := newSite(t).pipe()
	p.say(`{"id": "w", "path": "/claims", "body": {"queues": ["mail"], "wait": 60}}`)
	p.say(`{"id": 1, "cancel": "w"}`)
	answers := map[string]int{}
	for range 2 {
		a := p.hear()
		answers[fmt.Sprint(a.ID)] = a.Status
	}
	if answers["w"] != 204 || answers["1"] != 200 {
		t.Errorf("a claim that was withdrawn, and the answer to that: %v", answers)
	}
	p.say(`{"id": 2, "path": "/jobs", "body": {"queue": "mail", "payload": "Ada"}}`)
	job := p.hear().Body.ID
	for i := range 20 { // where the claim comes first, it is given back before its answer
		p.say(`{"id": "r%d", "path": "/claims", "body": {"queues": ["mail"], "wait": 60}}`, i)
		p.say(`{"cancel": "r%d"}`, i)
		a := p.hear()
		if a.ID != fmt.Sprint("r", i) || a.Status != 204 && len(a.Body.Claims) == 0 {
			t.Fatalf("withdrawn: %+v", a)
		}
		for _, c := range a.Body.Claims { // it was answered before
			p.say(`{"method": "PUT", "path": "/jobs/%s/claims/%s", "body": {"outcome": "released"}}`,
				c.ID, c.Lease_token)
			p.hear()
		}
		p.say(`{"id": 3, "path": "/jobs/%s"}`, job)
		if a := p.hear(); a.Body.State != "queued" {
			t.Fatalf("after a withdrawn claim the job is %s", a.Body.State)
		}
	}
	p.say(`{"id": 4, "cancel": "nothing"}`)
	if a := p.hear(); a.Status != 200 {
		t.Errorf("a cancel of nothing: %+v", a)
	}
	p.say(`{"id": 5, "cancel": "w", "path": "/status"}`)
	if a := p.hear(); a.Status != 400 {
		t.Errorf("a cancel with a path: %+v", a)
	}
	p.end()
}

// TestPipeRefusesWhatItCannotRead: each bad line has an answer, and those after it are read.
func TestPipeRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	p := newSite(t).pipe()
	for _, c := range []struct {
		line   string
		status int
		code   string
	}{
		{`no JSON`, 400, "usage"},
		{`[]`, 400, "usage"},
		{`{"path": "/status"} {"path": "/status"}`, 400, "usage"},
		{`{"path": "/status", "verb": "GET"}`, 400, "usage"},
		{`{"path": "status"}`, 400, "usage"},
		{`{"path": "/status", "method": "A B"}`, 400, "usage"},
		{`{"path": "/status", "method": "DELETE"}`, 405, "method"},
		{`{"path": "/status/%zz"}`, 400, "usage"},
		{`{"path": "/events/stream"}`, 400, "usage"},
		{`{"path": "/nothing"}`, 404, "no_resource"},
		{`{"path": "/jobs", "body": {"queue": "A B"}}`, 400, "usage"},
		{`{"path": "/jobs", "body": []}`, 400, "usage"},
		{`{"path": "/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV"}`, 404, "no_job"},
		{strings.Repeat("x", 13<<20), 413, "too_large"},
	} {
		p.say("%s", c.line)
		if a := p.hear(); a.Status != c.status || a.Body.Code != c.code || a.Body.Detail == "" {
			t.Errorf("%.60s: %+v", c.line, a)
		}
	}
	p.say("\n  ")
	p.say(`{"path": "/status"}`)
	if a := p.hear(); a.Status != 200 {
		t.Errorf("afterwards: %+v", a)
	}
	p.end()
	if out := p.run("verify"); !strings.HasPrefix(out, "ok: ") {
		t.Error(out)
	}
}

// TestPipeEndsWithoutAReader: a program that reads no more answers is gone.
func TestPipeEndsWithoutAReader(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cmd := s.command("pipe")
	in, err := cmd.StdinPipe()
	s.ok(err)
	reader, writer, err := os.Pipe()
	s.ok(err)
	cmd.Stdout = writer
	s.ok(cmd.Start())
	s.ok(writer.Close())
	s.ok(reader.Close())
	for range 3 { // one write is refused; the pipe may end before the next
		_, _ = fmt.Fprintln(in, `{"path": "/status"}`)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		_ = cmd.Process.Kill()
		t.Error("it goes on")
	}
}

// TestDocsPipeRecipes runs the programs of docs/http.md in other languages.
func TestDocsPipeRecipes(t *testing.T) {
	t.Parallel()
	page := readPage(t, "docs/http.md")
	for language, with := range map[string]string{"python": "python3", "js": "node", "ruby": "ruby",
		"php": "php", "bash": "bash"} {
		t.Run(language, func(t *testing.T) {
			for _, name := range []string{with, "jq"} {
				if _, err := exec.LookPath(name); err != nil && (name == with || language == "bash") {
					if os.Getenv("CI") == "true" {
						t.Fatal(err)
					}
					t.Skip(err) // which of them a machine has is chance; CI has them all
				}
			}
			_, recipe, found := strings.Cut(page, "```"+language+"\n")
			recipe, _, _ = strings.Cut(recipe, "```")
			if !found || strings.Count(recipe, "\n") > 20 {
				t.Fatalf("the recipe has %d lines", strings.Count(recipe, "\n"))
			}
			s := newSite(t)
			s.ok(os.WriteFile(s.path("recipe"), []byte(recipe), 0o600))
			cmd := exec.Command(with, "recipe")
			cmd.Dir = s.dir
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != "Dear Ada\n" {
				t.Fatalf("%v: %s", err, out)
			}
			if out := s.run("list", "--state", "succeeded", "--json"); strings.Count(out, "\n") != 0 || out == "" {
				t.Errorf("succeeded: %s", out)
			}
			s.run("verify")
		})
	}
}
