package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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

// quick are times that a test need not wait for long.
func quick(change func(*Times)) func(*Config) {
	return func(c *Config) {
		c.Times = DefaultTimes
		change(&c.Times)
	}
}

// send opens a connection and sends text; what the server answers until it closes the connection is read.
func (s *served) send(text string) (answer string) {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		s.t.Errorf("%.40q: %v", text, err)
	}
	return string(got)
}

// A client that does not send its headers in time is cut off, and holds up no other.
func TestSlowClientHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := serveWith(t, "127.0.0.1:0", quick(func(all *Times) { all.Header = 200 * time.Millisecond }))
	var slow sync.WaitGroup
	slow.Go(func() {
		if got := s.send("GET /healthz HTTP/1.1\r\nHost: "); got != "" {
			t.Errorf("the slow client got %s", got)
		}
	})
	if answer, _ := s.do("GET", "/healthz", nil); answer.StatusCode != http.StatusOK {
		t.Errorf("another client: %s", answer.Status)
	}
	slow.Wait()
}

// A client that does not send its body in time gets an answer that says so, by each way that reads bodies.
func TestSlowBodiesAreRefused(t *testing.T) {
	t.Parallel()
	s := serveWith(t, "127.0.0.1:0", quick(func(all *Times) { all.Body = 300 * time.Millisecond }))
	token := s.create("all", []string{"*"}, access.Scopes...)
	cookie, _ := s.login()
	var all sync.WaitGroup
	for path, kind := range map[string]string{
		api.Root + "/jobs": jsonKind, api.Root + "/claims": jsonKind, api.Root + "/heartbeats": jsonKind,
		api.Root + "/acts": jsonKind, api.Root + "/queues/q/jobs": "text/plain",
		"/login": "application/x-www-form-urlencoded", "/acts": "application/x-www-form-urlencoded",
	} {
		credential := "Authorization: " + token
		if !strings.HasPrefix(path, api.Root) {
			credential = "Cookie: " + cookie
		}
		all.Go(func() {
			got := s.send("POST " + path + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.base, "http://") + "\r\n" +
				"Content-Type: " + kind + "\r\n" + credential + "\r\nContent-Length: 100\r\n\r\n{")
			if !strings.HasPrefix(got, "HTTP/1.1 408 ") ||
				strings.HasPrefix(path, api.Root) && !strings.Contains(got, `"code":"slow"`) {
				t.Errorf("%s: %s", path, got)
			}
		})
	}
	all.Wait()
	commandstest.Verify(t, s.Store)
}

// A client that closes its half of the connection before the answer gets none that says that all is well.
func TestHalfClosedConnectionGetsNoEmptyAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	token := s.create("w", []string{"*"}, access.Work)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"queues":["q"],"worker":"w","boot":"b","tokens":["01KDXYZAF8000000000000000A"],"wait":60}`
	_, err = fmt.Fprintf(conn, "POST %s/claims HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\n"+
		"Authorization: %s\r\nContent-Length: %d\r\n\r\n%s", api.Root, conn.RemoteAddr(), jsonKind, token,
		len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	status, _, _ := strings.Cut(strings.TrimPrefix(string(got), "HTTP/1.1 "), " ")
	if err != nil || status != "408" && status != "204" { // 204 where it did not wait any more
		t.Errorf("%v, %s", err, got)
	}
	commandstest.Verify(t, s.Store)
}

// A connection on which nothing is asked for a while is closed.
func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	s := serveWith(t, "127.0.0.1:0", quick(func(all *Times) { all.Idle = 100 * time.Millisecond }))
	got := s.send("GET /healthz HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.base, "http://") + "\r\n\r\n")
	if !strings.HasSuffix(got, "\r\n\r\nok\n") || strings.Contains(got, "Connection: close") {
		t.Errorf("before it was closed: %s", got)
	}
}

// A token that asks too often is to ask again later; another one is answered.
func TestRequestsOfOneTokenAreLimited(t *testing.T) {
	now := time.Now()
	s := serveWith(t, "127.0.0.1:0", func(c *Config) { c.Rate, c.Now = 2, func() time.Time { return now } })
	many := s.create("many", []string{"*"}, access.Work)
	answers := make(map[int]int)
	for range 10 {
		answer, _ := s.do("GET", api.Root+"/claims?boot=b", nil, "Authorization", many)
		answers[answer.StatusCode]++
		if answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") == "" {
			t.Error("an answer 429 without Retry-After")
		}
	}
	if answers[http.StatusOK] != 2*2 || answers[http.StatusTooManyRequests] != 10-2*2 {
		t.Errorf("with 2 requests a second, and twice as many at once: %v", answers)
	}
	other := s.create("other", []string{"*"}, access.Work)
	answer, _ := s.do("GET", api.Root+"/claims?boot=b", nil, "Authorization", other)
	if answer.StatusCode != http.StatusOK {
		t.Errorf("another token: %s", answer.Status)
	}
}

// What takes too long to compute is given up.
func TestAnswersAreComputedInTime(t *testing.T) {
	t.Parallel()
	s := serveWith(t, "127.0.0.1:0", quick(func(all *Times) { all.Ask = time.Microsecond }))
	token := s.create("r", []string{"*"}, access.Read)
	answer, text := s.do("GET", api.Root+"/jobs", nil, "Authorization", token)
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("%s %s", answer.Status, text)
	}
}

// A server that ends says so to those that ask whether it is ready.
func TestReadyUntilTheServerEnds(t *testing.T) {
	s := New(Config{Config: door.Config{Store: commandstest.New(t).Store, Now: time.Now}})
	ready := func() (status int, again string) {
		w := httptest.NewRecorder()
		s.door.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
		return w.Code, w.Header().Get("Retry-After")
	}
	if status, _ := ready(); status != http.StatusOK {
		t.Errorf("before: %d", status)
	}
	s.door.Close()
	if status, again := ready(); status != http.StatusServiceUnavailable || again == "" {
		t.Errorf("when it ends: %d, Retry-After %q", status, again)
	}
}

// A request that does not end in time is cut off when the server ends, and is not carried out.
func TestEndingServerWaitsForSoLong(t *testing.T) {
	t.Parallel()
	s := serveWith(t, "127.0.0.1:0", quick(func(all *Times) { all.Drain = 100 * time.Millisecond }))
	token := s.create("all", []string{"*"}, access.Enqueue)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST %s/jobs HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nAuthorization: %s\r\n"+
		"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n", api.Root, conn.RemoteAddr(), jsonKind, token)
	if err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(conn, begun); err != nil { // its handler reads the body from then on
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if rest, _ := io.ReadAll(conn); strings.HasPrefix(string(rest), "HTTP/1.1 2") {
		t.Errorf("the request is answered with %s", rest)
	}
	wantOneEvent(t, s.Store)
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
