//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"jobledger/ledger/ledgertest"
)

// deliveries are what the webhook is to get of the queue mail: the id of each event begins with its position.
func (s site) deliveries() (positions map[string]bool) {
	s.Helper()
	positions = make(map[string]bool)
	for line := range strings.Lines(s.run("events", "-q", "mail", "--json", "--last", "1000")) {
		var x struct {
			Pos  int64
			Kind string
		}
		s.ok(json.Unmarshal([]byte(line), &x))
		if x.Kind != "heartbeat" {
			positions[fmt.Sprint(x.Pos)] = true
		}
	}
	return positions
}

// positionOf is that of the event which a request is about.
func positionOf(r *http.Request) string {
	pos, _, _ := strings.Cut(r.Header.Get("Webhook-Id"), "-")
	return pos
}

// A serve that is killed while it makes a request sends it again when it runs again, with the same id, and
// skips none.
func TestKilledServeSendsEachEvent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var mu sync.Mutex
	taken := make(map[string]int) // by position
	came := make(chan struct{}, 10_000)
	most := ledgertest.Size(1, 1, 8)
	kills := most
	var serve *running
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		if len(taken)%3 == 1 && kills > 0 {
			if kills--; kills%2 == 0 { // it is taken, and serve never learns that
				taken[positionOf(r)]++
			}
			_ = serve.Process.Kill()
			<-r.Context().Done()
			return
		}
		taken[positionOf(r)]++
		came <- struct{}{}
	}))
	defer receiver.Close()
	s.run("webhook", "add", "crm", "--url", receiver.URL, "--allow", "127.0.0.0/8", "-q", "mail", "--timeout",
		"2s")
	for range 5 {
		s.enqueue("x")
	}
	s.run("work", "-q", "mail", "--drain", "--", "true")
	wanted := s.deliveries()
	for begun := 1; ; begun++ {
		mu.Lock()
		serve = s.start(s.command("serve"))
		mu.Unlock()
		left := len(wanted)
		for gone := false; left > 0 && !gone; {
			select {
			case <-came:
			case <-serve.exited:
				gone = true
			case <-time.After(time.Minute):
				t.Fatalf("%d of %d are missing\n%s", left, len(wanted), s.run("status"))
			}
			mu.Lock()
			left = len(wanted) - len(taken)
			for pos, n := range taken {
				if !wanted[pos] || n > begun {
					t.Errorf("event %s came %d times", pos, n)
				}
			}
			mu.Unlock()
		}
		if left == 0 {
			break
		}
		for strings.Contains(s.run("list", "-q", "webhook.crm", "--json", "--limit", "1000"), `"state":"claimed"`) {
			time.Sleep(50 * time.Millisecond) // a look starts two processes, which takes about as long
			s.run("sweep", "--grace", "0s")   // its process is gone, and its lease ends soon
		}
	}
	serve.signal(syscall.SIGTERM)
	serve.wantExit(0)
	if kills == most { // how many there are depends on how many events each serve has sent
		t.Error("no serve was killed")
	}
	s.run("verify")
}

// TestDocsWebhookReceiver runs the receiver in testdata/webhook: it takes what is signed with its secret, and
// while that is rotated with the one before, and nothing else.
func TestDocsWebhookReceiver(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("python3 is not installed") // in CI that is a failure
	}
	s := newSite(t)
	add := func(name, url string) {
		secret := s.run("webhook", "add", name, "--url", url, "--allow", "127.0.0.0/8", "--kind", "succeeded")
		s.ok(os.WriteFile(s.path(name), []byte(secret+"\n"), 0o600))
	}
	add("crm", "http://127.0.0.1:1/")
	python := exec.Command("python3", filepath.Join("..", "..", "testdata", "webhook", "receiver.py"),
		s.path("crm"), "0") // #nosec G204 -- a file of this repository
	endsWithTest(python)
	out, err := python.StdoutPipe()
	s.ok(err)
	s.ok(python.Start())
	defer func() {
		_ = python.Process.Kill()
		_ = python.Wait()
	}()
	lines := bufio.NewScanner(out)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatal("the receiver has ended")
		}
		return lines.Text()
	}
	url := "http://127.0.0.1:" + strings.TrimPrefix(next(), "listens at ") + "/"
	s.run("webhook", "remove", "crm")
	s.run("webhook", "add", "crm", "--url", url, "--allow", "127.0.0.0/8", "--kind", "succeeded", "--secret",
		s.path("crm"))
	s.run("webhook", "test", "crm")
	if line := next(); !strings.Contains(line, "dev.jobledger.test.v1") {
		t.Error(line)
	}
	s.run("webhook", "rotate", "crm")
	s.run("webhook", "test", "crm")
	next()
	add("other", url)
	refused := s.command("webhook", "test", "other")
	if text, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(text), "http_401") {
		t.Errorf("another secret: %v\n%s", err, text)
	}
	s.run("webhook", "remove", "other")
	serve := s.start(s.command("serve"))
	job := s.enqueue("x")
	s.run("work", "-q", "mail", "--once", "--", "true")
	if line := next(); !strings.HasSuffix(line, " dev.jobledger.job.succeeded.v1 "+job+" mail") {
		t.Error(line)
	}
	serve.signal(syscall.SIGTERM)
	serve.wantExit(0)
	s.run("verify")
}
