package web

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/commands"
	"jobledger/commands/remote"
	"jobledger/commands/worker"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// One token takes its share of the streams, and others have theirs.
func TestStreamsHaveABoundForEachToken(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	one, other := s.create("one", []string{"*"}, access.Read), s.create("other", []string{"*"}, access.Read)
	ask := func(token string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.base+api.Root+"/events/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", token)
		answer, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	for i := range 64 {
		if answer := ask(one); answer.StatusCode != 200 {
			t.Fatalf("stream %d: %s", i, answer.Status)
		}
	}
	if answer := ask(one); answer.StatusCode != 429 {
		t.Errorf("one more stream: %s", answer.Status)
	}
	if answer := ask(other); answer.StatusCode != 200 {
		t.Errorf("a stream of another token: %s", answer.Status)
	}
}

// Connections without a credential, more than the server has room for, keep no worker with a token out.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	address := strings.TrimPrefix(s.base, "http://")
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	var mu sync.Mutex
	var all sync.WaitGroup
	each := ledgertest.Size(280, 300, 500)
	for range 8 {
		all.Go(func() {
			for i := range each {
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				open = append(open, c)
				mu.Unlock()
				switch i % 3 {
				case 0: // idle after an answer
					_, _ = fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", address)
				case 1: // a part of a header
					_, _ = fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHo")
				}
			}
		})
	}
	all.Wait()
	token := strings.TrimPrefix(s.create("all", []string{"*"}, access.Enqueue, access.Work), "Bearer ")
	client, err := remote.New(remote.Config{URL: s.base, Token: token, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	w := &worker.Worker{Backend: client, Queues: []string{"q"}, MaxJobs: 1,
		Handler: worker.HandlerFunc(func(context.Context, projection.Job) ([]byte, error) {
			t.Logf("claimed after %s", time.Since(start))
			return nil, nil
		})}
	if _, err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 5*time.Second { // some milliseconds on an idle machine
		t.Errorf("a worker next to idle connections took %s", took)
	}

	if !ledgertest.All() {
		return
	}
	// A connection without a credential is closed seconds after its answer, one with a token is kept.
	kept := func(header string) bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", address)
		_, _ = fmt.Fprintf(c, "GET /api/v1/claims/ready?queue=none HTTP/1.1\r\nHost: %s\r\n%s\r\n", address,
			header)
		in := bufio.NewReader(c)
		_ = c.SetReadDeadline(time.Now().Add(7 * time.Second))
		for {
			if _, err = in.ReadString('\n'); err != nil {
				timeout, ok := err.(net.Error)
				return ok && timeout.Timeout()
			}
		}
	}
	if kept("") {
		t.Error("an idle connection without a credential is kept")
	}
	if !kept("Authorization: Bearer " + token + "\r\n") {
		t.Error("an idle connection with a token is closed")
	}
}
