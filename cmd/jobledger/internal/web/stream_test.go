package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// message is a server-sent event.
type message struct{ id, event, data string }

// reader is an open stream.
type reader struct {
	t    testing.TB
	body *bufio.Scanner
	end  func()
	raw  io.Reader // of body
}

// openStream opens a stream; header has pairs of name and value.
func (s *served) openStream(path string, header ...string) *reader {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	end := func() {
		cancel()
		_ = answer.Body.Close()
	}
	s.t.Cleanup(end)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("%s: %s, %v", path, answer.Status, answer.Header)
	}
	return &reader{s.t, bufio.NewScanner(answer.Body), end, answer.Body}
}

// next returns the next message; at the end of the stream it has no event.
func (r *reader) next() (m message) {
	for r.body.Scan() {
		name, value, _ := strings.Cut(r.body.Text(), ": ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data = value
		case "":
			if m.event != "" {
				return m
			}
		}
	}
	return message{}
}

// enqueue adds n jobs to queue, each in an event of its own.
func (s *served) enqueue(queue string, n int) {
	s.t.Helper()
	jobs := make([]commands.Enqueue, n)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: queue, Payload: []byte("a")}
	}
	service := commands.Service{Store: s.Store}
	if _, err := service.Enqueue(s.t.Context(), "cli:test", jobs...); err != nil {
		s.t.Fatal(err)
	}
}

// lines are the events of the ledger in their public form, by position.
func (s *served) lines(f ledger.Filter) (all []string) {
	s.t.Helper()
	events, err := view.EventsOf(s.t.Context(), s.Store, f)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range events {
		all = append(all, strings.TrimSuffix(string(e.Line), "\n"))
	}
	return all
}

// A client that is cut off at every event, and resumes, gets each event once and in order, whether the
// follower still keeps them or not.
func TestStreamResumesWithoutGap(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	const path = "/api/v1/events/stream?after=0"
	var got []string
	id := ""
	for round := 0; ; round++ {
		header := []string{"Cookie", cookie}
		if id != "" {
			header = append(header, "Last-Event-ID", id)
		}
		r := s.openStream(path, header...)
		if m := r.next(); m.event != "hello" {
			t.Fatalf("round %d begins with %+v", round, m)
		}
		if round < 6 { // while it is open, and faster than it reads
			s.enqueue("mail", 3)
		}
		m := r.next()
		if m.event != "enqueued" || !strings.HasPrefix(m.id, fmt.Sprint(len(got)+1)+".") {
			t.Fatalf("message %d: %+v", len(got)+1, m)
		}
		got, id = append(got, m.data), m.id
		r.end()
		if len(got) == 1+6*3 {
			break
		}
	}
	for i, want := range s.lines(ledger.Filter{}) {
		if got[i] != want {
			t.Errorf("event %d: %s, want %s", i+1, got[i], want)
		}
	}
}

// A client whose connection is cut after any number of bytes, so within a message too, drops what is not
// whole, as browsers do, and gets each event once.
func TestStreamCutAnywhere(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	s.enqueue("mail", ledgertest.Size(5, 20, 200))
	all := s.lines(ledger.Filter{})
	var got []string
	id := ""
	for cut := 1; len(got) < len(all); cut = (cut + 37) % 1201 { // up to two messages
		r := s.openStream("/api/v1/events/stream?after=0", "Cookie", cookie, "Last-Event-ID", id)
		r.body = bufio.NewScanner(io.LimitReader(r.raw, int64(cut)))
		for m := r.next(); m.event != ""; m = r.next() {
			if m.event == "hello" {
				continue
			}
			if got, id = append(got, m.data), m.id; len(got) == len(all) {
				break
			}
		}
		r.end()
	}
	for i, want := range all {
		if got[i] != want {
			t.Errorf("event %d: %s, want %s", i+1, got[i], want)
		}
	}
}

func TestStreamFilters(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	mail := s.openStream("/api/v1/events/stream?queue=mail&after=0", "Cookie", cookie)
	kind := s.openStream("/tail/stream?kind=worker_started&kind=enqueued", "Cookie", cookie)
	but := s.openStream("/api/v1/events/stream?kind=-enqueued&after=0", "Cookie", cookie)
	for _, r := range []*reader{mail, kind, but} {
		if m := r.next(); m.event != "hello" {
			t.Fatalf("the first message is %+v", m)
		}
	}
	s.enqueue("render", 2)
	s.enqueue("mail", 1)
	for i, want := range s.lines(ledger.Filter{Queue: "mail"}) {
		if m := mail.next(); m.data != want {
			t.Errorf("message %d of mail: %+v, want %s", i, m, want)
		}
	}
	for _, pos := range []int64{2, 3, 4} {
		var v struct {
			Pos  int64
			Kind string
		}
		if m := kind.next(); json.Unmarshal([]byte(m.data), &v) != nil || v.Pos != pos || v.Kind != "enqueued" {
			t.Errorf("event %d for the page: %+v", pos, m)
		}
	}
	service := commands.Service{Store: s.Store}
	if _, err := service.Pause(t.Context(), "cli:test", "mail", "smtp is down"); err != nil {
		t.Fatal(err)
	}
	if m := but.next(); m.event != "queue_paused" {
		t.Errorf("all kinds but enqueued begin with %+v", m)
	}
	for query, want := range map[string]int{"kind=lost": 400, "kind=-lost": 400, "after=x": 400,
		"after=-1": 400, "limit=1": 400,
		"queue=a&queue=b": 400, "job=01KZZZZZZZZZZZZZZZZZZZZZZZ": 404} {
		if answer, body := s.do("GET", "/api/v1/events/stream?"+query, nil, "Cookie",
			cookie); answer.StatusCode != want {
			t.Errorf("%s: %s\n%s", query, answer.Status, body)
		}
	}
}

// An event that this ledger does not have, because it was replaced by an older copy, leads to a reset.
func TestStreamResets(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	var is struct{ ID string }
	_, text := s.do("GET", "/api/v1/ledger", nil, "Cookie", cookie)
	if err := json.Unmarshal([]byte(text), &is); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"2": "reset", "1.00000000": "reset", "0.12345678": "reset",
		"1": "hello", "0": "hello"} {
		r := s.openStream("/api/v1/events/stream", "Cookie", cookie, "Last-Event-ID", id)
		m := r.next()
		if m.event != want {
			t.Errorf("after %s: %+v, want %s", id, m, want)
		}
		var begins struct {
			Ledger   string
			Restores *int
		}
		if err := json.Unmarshal([]byte(m.data), &begins); err != nil || begins.Ledger != is.ID ||
			begins.Restores == nil || *begins.Restores != 0 || len(is.ID) != 32 {
			t.Errorf("after %s: %+v; the ledger is %s", id, m, is.ID)
		}
		r.end()
	}
}

// If other events have taken the place of some that were sent, as after a failover that lost events, an
// open stream says so, and so does one that resumes; what comes then is sent.
func TestStreamResetsAfterFailoverThatLostEvents(t *testing.T) {
	for _, more := range []int{0, 1, 5} { // the ledger is shorter than it was, as long, longer
		dsn := ledgertest.Empty(t)
		s := serveWith(t, "127.0.0.1:0", func(c *Config) { c.Store = ledgertest.OpenAt(t, dsn) })
		s.enqueue("mail", 1)
		cookie, _ := s.login()
		all := s.openStream("/api/v1/events/stream", "Cookie", cookie)
		mail := s.openStream("/api/v1/events/stream?queue=mail", "Cookie", cookie)
		s.enqueue("mail", 1)
		var id string
		for _, r := range []*reader{all, mail} {
			if hello, m := r.next(), r.next(); hello.event != "hello" || m.event != "enqueued" {
				t.Fatalf("%+v, %+v", hello, m)
			}
		}
		back := ledgertest.Rewind(t, dsn)
		s.enqueue("mail", 1)
		for _, r := range []*reader{all, mail} {
			m := r.next()
			if id = m.id; m.event != "enqueued" || !strings.HasPrefix(id, "3.") {
				t.Fatalf("%+v", m)
			}
		}
		back()
		other := ledgertest.OpenAt(t, dsn) // which has none of the first one's caches
		service := commands.Service{Store: other}
		for range more {
			_, err := service.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail", Payload: []byte("b")})
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, r := range map[string]*reader{"all": all, "mail": mail} {
			m := r.next()
			for m.event == "enqueued" { // those after the ones that were lost may come before it is noticed
				m = r.next()
			}
			var v struct{ Pos int64 }
			if m.event != "reset" || json.Unmarshal([]byte(m.data), &v) != nil || v.Pos < 2 {
				t.Fatalf("%d more, %s: %+v, want reset", more, name, m)
			}
		}
		last, err := service.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"})
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*reader{"all": all, "mail": mail} {
			m := r.next()
			for m.event == "enqueued" && !strings.Contains(m.data, string(last[0].ID)) {
				m = r.next()
			}
			if m.event != "enqueued" {
				t.Errorf("%d more, %s goes on with %+v", more, name, m)
			}
		}
		resumed := s.openStream("/api/v1/events/stream", "Cookie", cookie, "Last-Event-ID", id)
		if m := resumed.next(); m.event != "reset" {
			t.Errorf("%d more, one that resumes: %+v", more, m)
		}
		commandstest.Verify(t, other)
	}
}

func TestStreamEndsWithServerAndLimit(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	r := s.openStream("/api/v1/events/stream", "Cookie", cookie)
	r.next()
	f := s.follower
	for range view.MaxStreams - 1 {
		f.Join(await.SeenEnd{})
	}
	if answer, body := s.do("GET", "/api/v1/events/stream", nil, "Cookie", cookie); answer.StatusCode != 503 ||
		answer.Header.Get("Retry-After") == "" {
		t.Errorf("one stream too many: %s\n%s", answer.Status, body)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if m := r.next(); m.event != "bye" {
		t.Errorf("at the end of the server: %+v", m)
	}
}

// pipes is a listener whose connections have no buffer, so that a client that reads nothing is noticed at
// once.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.closed); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711} }

// A client that reads nothing is dropped, with a line in the log, and holds up no other.
func TestStreamDropsClientThatReadsNothing(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	logged := make(chan string, 4)
	links := make(chan string, 1)
	slow := New(Config{Config: door.Config{Store: s.Store, Now: time.Now,
		Report:   func(format string, args ...any) { logged <- fmt.Sprintf(format, args...) },
		Announce: func(link string) { links <- link }}})
	slow.api.StreamWrite = 20 * time.Millisecond
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- slow.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	dial := func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		l.conns <- there
		return here, nil
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, CheckRedirect: s.client.CheckRedirect}
	_, code, _ := strings.Cut(<-links, "#")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:4711/login",
		strings.NewReader(url.Values{"code": {code}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	login, err := client.Do(r)
	if err != nil || len(login.Cookies()) != 1 {
		t.Fatalf("login: %v, %v", login, err)
	}
	_ = login.Body.Close()
	conn, _ := dial(ctx, "", "")
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET /api/v1/events/stream?after=0 HTTP/1.1\r\nHost: 127.0.0.1:4711\r\n"+
		"Cookie: %s=%s\r\n\r\n", login.Cookies()[0].Name, login.Cookies()[0].Value)
	if err != nil {
		t.Fatal(err)
	}
	if line := <-logged; !strings.Contains(line, "its client read nothing for 20ms") {
		t.Errorf("logged: %s", line)
	}
	cookie, _ := s.login()
	other := s.openStream("/api/v1/events/stream?after=0", "Cookie", cookie)
	if m := other.next(); m.event != "hello" {
		t.Errorf("another client: %+v", m)
	}
	_, _ = io.Copy(io.Discard, conn) // until the server has closed it
	if n := slow.follower.Count(); n != 0 {
		t.Errorf("%d streams after the end of the only one", n)
	}
}
