//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"jobledger/cmd/jobledger/internal/cli"
)

// underWay is a connection to a server, with a request.
type underWay struct {
	net.Conn
	site
	answers *bufio.Reader
}

// begin connects to address, and sends the beginning of a request.
func (s site) begin(address, text string) *underWay {
	s.Helper()
	conn, err := new(net.Dialer).DialContext(s.Context(), "tcp", address)
	s.ok(err)
	s.Cleanup(func() { _ = conn.Close() })
	u := &underWay{conn, s, bufio.NewReader(conn)}
	u.send(text)
	return u
}

func (u *underWay) send(text string) {
	u.Helper()
	_, err := io.WriteString(u, text)
	u.ok(err)
}

// until reads lines up to one that begins so.
func (u *underWay) until(begin string) {
	u.Helper()
	for {
		line, err := u.answers.ReadString('\n')
		if err != nil {
			u.Fatalf("there is no line %s: %v", begin, err)
		}
		if strings.HasPrefix(line, begin) {
			return
		}
	}
}

// answer reads an answer.
func (u *underWay) answer() (status int, header http.Header, body string) {
	u.Helper()
	a, err := http.ReadResponse(u.answers, nil)
	u.ok(err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	u.ok(err)
	return a.StatusCode, a.Header, string(text)
}

// A server that is asked to end says so to those who ask whether it is ready, answers those who wait for a
// job, ends streams with a word, and answers the requests under way; then it ends with 0.
func TestServeEndsInOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	token := s.run("token", "create", "all", "--queue", "*", "--scope", "read", "--scope", "enqueue", "--scope",
		"work", "--scope", "metrics")
	server, address := s.serve()
	head := fmt.Sprintf(" HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", address, token)
	withBody := func(path, body string, more string) string {
		return fmt.Sprintf("POST /api/v1%s%sContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n", path,
			head, len(body), more)
	}

	stream := s.begin(address, "GET /api/v1/events/stream"+head+"\r\n")
	stream.until("event: hello")
	claim := `{"queues":["none"],"worker":"w","boot":"b","tokens":["01KDXYZAF8000000000000000A"],"wait":60}`
	poll := s.begin(address, withBody("/claims", claim, "")+claim)
	s.eventually("a claim waits", func() bool {
		_, _, text := s.begin(address, "GET /metrics"+head+"Connection: close\r\n\r\n").answer()
		return strings.Contains(text, "jobledger_long_polls 1\n")
	})
	job := `{"queue":"mail","payload":"under way"}`
	enqueue := s.begin(address, withBody("/jobs", job, "Expect: 100-continue\r\n"))
	enqueue.until("HTTP/1.1 100 ") // its handler reads the body
	enqueue.send(job[:10])

	server.signal(syscall.SIGTERM)
	stream.until("event: bye")
	for _, path := range []string{"/readyz", "/api/v1/status", "/"} {
		status, header, text := s.begin(address, "GET "+path+head+"\r\n").answer()
		if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" ||
			!strings.Contains(text, `"code":"draining"`) {
			t.Errorf("%s, when the server ends: %d, %v, %s", path, status, header, text)
		}
	}
	if status, _, text := s.begin(address, "GET /healthz"+head+"\r\n").answer(); status != http.StatusOK {
		t.Errorf("it lives until it has ended: %d %s", status, text)
	}
	if status, header, text := poll.answer(); status != http.StatusNoContent || header.Get("Retry-After") == "" {
		t.Errorf("the claim that waits: %d, %v, %s", status, header, text)
	}
	stream.until("0\r\n") // its last chunk
	enqueue.send(job[10:])
	enqueue.until("\r\n") // of 100
	if status, _, text := enqueue.answer(); status != http.StatusCreated {
		t.Errorf("a request under way: %d %s", status, text)
	}
	server.wantExit(cli.ExitOK)
	if listed := s.run("list", "-q", "mail", "--json"); strings.Count(listed, "\n")+1 != 1 ||
		!strings.Contains(listed, `"state":"queued"`) {
		t.Errorf("the jobs are %s", listed)
	}
	s.run("verify")
}
