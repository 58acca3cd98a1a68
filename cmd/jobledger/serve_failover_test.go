//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger/ledgertest"
)

// streamed are the events that a stream of a server sent.
type streamed struct {
	mu     sync.Mutex
	events []string // as JSON
	others []string // the names of other messages
	err    error    // once it has ended
}

func (s *streamed) read(lines *bufio.Scanner) {
	name := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		s.mu.Lock()
		switch {
		case field == "event":
			name = value
			if name == "hello" || name == "reset" || name == "bye" {
				s.others = append(s.others, name)
			}
		case field == "data" && strings.Contains(value, `"kind"`):
			s.events = append(s.events, value)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.err = fmt.Errorf("the stream ended: %w", lines.Err())
	s.mu.Unlock()
}

func (s *streamed) so() (events, others []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events, s.others, s.err
}

// A server goes on without help where its primary crashes and a standby takes over that its address names
// too: it answers again, no job is lost that it acknowledged, none is done twice, and its streams go on
// without a gap.
func TestServeSurvivesFailover(t *testing.T) {
	ledgertest.Slow(t)
	t.Parallel()
	s, primary, standby := newPairSite(t)
	access := s.path("access")
	token := s.run("token", "create", "all", "--access", access, "--queue", "*", "--scope", "read", "--scope",
		"enqueue", "--scope", "work")
	s.ok(os.WriteFile(s.path("token"), []byte(token+"\n"), 0o600))
	server, address := s.serve("--access", access)
	request := func(method, path, body string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/api/v1"+path,
			strings.NewReader(body))
		s.ok(err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		return r
	}
	stream, err := http.DefaultClient.Do(request("GET", "/events/stream?after=0", ""))
	s.ok(err)
	defer stream.Body.Close()
	var seen streamed
	go seen.read(bufio.NewScanner(stream.Body))
	worker := s.start(s.command("work", "-q", "mail", "--url", "http://"+address, "--api-token-file", "token",
		"--worker", "steady", "-j", "2", "--lease", "30s", "--", "sh", "-c", "echo $JOBLEDGER_JOB >>ran"))

	// A producer sends each job until it is acknowledged, and is never far ahead of the worker.
	var mu sync.Mutex
	acknowledged := make(map[string]bool)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if n >= s.linesOf("ran")+20 {
				continue
			}
			answer, err := http.DefaultClient.Do(request("POST", "/jobs",
				fmt.Sprintf(`{"queue":"mail","payload":"x","key":"order-%d"}`, n)))
			if err != nil {
				t.Errorf("the server does not answer: %v", err)
				return
			}
			var job struct{ ID string }
			err = json.NewDecoder(answer.Body).Decode(&job)
			_ = answer.Body.Close()
			mu.Lock()
			switch {
			case answer.StatusCode/100 == 2 && err == nil && job.ID != "":
				acknowledged[job.ID] = true
				n++
			case answer.StatusCode != http.StatusServiceUnavailable:
				t.Errorf("a job is answered with %s, %v", answer.Status, err)
			}
			mu.Unlock()
		}
	}()
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	s.eventually("jobs run", func() bool { return s.linesOf("ran") >= 20 })
	primary.Kill()
	away := time.Now()
	time.Sleep(300 * time.Millisecond) // there is no primary for this long
	before := count()
	standby.Promote()
	promoted := time.Now()
	s.eventually("jobs are acknowledged again", func() bool { return count() >= before+20 })
	t.Logf("%d jobs before; 20 more were acknowledged %v after the promotion, which ended %v after the crash",
		before, time.Since(promoted).Round(time.Millisecond), promoted.Sub(away).Round(time.Millisecond))
	close(stop)
	<-ended

	list := func() map[string]bool {
		jobs := make(map[string]bool)
		for line := range strings.Lines(s.run("list", "--state", "succeeded", "--limit", "100000", "--json")) {
			var job struct{ ID string }
			s.ok(json.Unmarshal([]byte(line), &job))
			jobs[job.ID] = true
		}
		return jobs
	}
	s.eventually("all jobs succeed", func() bool {
		return s.linesOf("ran") >= count() && len(list()) >= count()
	})
	worker.signal(syscall.SIGTERM)
	worker.wantExit(cli.ExitOK)
	done := list()
	for id := range acknowledged {
		if !done[id] {
			t.Errorf("the job %s was acknowledged, and is not done", id)
		}
	}
	if ran := s.linesOf("ran"); len(done) != len(acknowledged) || ran != len(done) {
		t.Errorf("%d jobs are done by %d commands, %d were acknowledged", len(done), ran, len(acknowledged))
	}
	want := strings.Split(s.run("events", "--json"), "\n")
	s.eventually("the stream has all events", func() bool {
		events, _, err := seen.so()
		return len(events) >= len(want) || err != nil
	})
	events, others, err := seen.so()
	if err != nil || len(others) != 1 || others[0] != "hello" || len(events) != len(want) {
		t.Fatalf("the stream sent %d events of %d, and %q: %v", len(events), len(want), others, err)
	}
	for i, line := range want {
		var sent, there struct {
			Pos       int64
			Kind, Job string
		}
		s.ok(json.Unmarshal([]byte(events[i]), &sent))
		s.ok(json.Unmarshal([]byte(line), &there))
		if sent != there {
			t.Fatalf("event %d of the stream is %+v, and there is %+v", i, sent, there)
		}
	}
	server.signal(syscall.SIGTERM)
	server.wantExit(cli.ExitOK)
	s.run("verify")
}
