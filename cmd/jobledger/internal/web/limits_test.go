package web

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/work"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
)

func TestSlowClientHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: "); err != nil {
		t.Fatal(err)
	}
	if answer, _ := s.do("GET", "/healthz", nil); answer.StatusCode != http.StatusOK {
		t.Errorf("another client: %s", answer.Status)
	}
	if _, err := io.ReadAll(conn); err != nil { // the server gives up after headerTimeout
		t.Errorf("the slow client: %v", err)
	}
}

// TestHeadersAreLimited sends more than a server that closes the connection may let it send.
func TestHeadersAreLimited(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Large", strings.Repeat("x", 2*door.MaxHeader))
	answer, err := s.client.Do(r)
	if err != nil {
		return // cut off
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of %d bytes: %s", 2*door.MaxHeader, answer.Status)
	}
}

// A program that may operate has the whole ledger verified, at once instead of a minute later.
func TestCheckIsAskedFor(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	token := s.create("op", []string{"*"}, access.Read, access.Operate)
	verified := func(method, path string) (v struct {
		At           *string
		Since, Until int64
		Findings     []any
	}) {
		t.Helper()
		answer, text := s.do(method, api.Root+path, nil, "Authorization", token)
		if err := json.Unmarshal([]byte(text), &v); err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s %v\n%s", method, path, answer.Status, err, text)
		}
		return v
	}
	first := verified("GET", "/integrity")
	for first.At == nil {
		time.Sleep(10 * time.Millisecond) // the check at the start is under way
		first = verified("GET", "/integrity")
	}
	verified("POST", "/integrity/checks")
	next := verified("GET", "/integrity")
	for *next.At == *first.At {
		time.Sleep(10 * time.Millisecond) // it is carried out by another goroutine
		next = verified("GET", "/integrity")
	}
	if next.Since != 0 || next.Until < 1 || len(next.Findings) != 0 {
		t.Errorf("verified: %+v", next)
	}
}

// While so many requests wait for the ledger, further ones are refused, to be sent again; those that wait are
// carried out.
func TestWritersAreLimited(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	token := s.create("all", []string{"*"}, access.Enqueue)
	begun, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		once := sync.OnceFunc(func() { close(begun) })
		if err := s.Store.Write(t.Context(), func(*ledger.Tx) error { once(); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	const more = 10
	statuses := make(chan int, work.MaxWriting+more)
	for range work.MaxWriting + more {
		all.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.base+api.Root+"/jobs",
				strings.NewReader(`{"queue":"q"}`))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Content-Type", jsonKind)
			r.Header.Set("Authorization", token)
			answer, err := s.client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			_ = answer.Body.Close()
			statuses <- answer.StatusCode
		})
	}
	for range more {
		if status := <-statuses; status != http.StatusServiceUnavailable {
			t.Errorf("one more: %d", status)
		}
	}
	close(release)
	for range work.MaxWriting {
		if status := <-statuses; status != http.StatusCreated {
			t.Errorf("one that waited: %d", status)
		}
	}
	all.Wait()
	commandstest.Verify(t, s.Store)
}
