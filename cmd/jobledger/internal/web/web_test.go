package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/apitest"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	_ "jobledger/ledger/ledgertest" // for -engine and -soak
	"jobledger/projection"
	"jobledger/projection/inbox"
	"jobledger/projection/status"
)

// served is a server on the loopback interface, with one job in the queue mail.
type served struct {
	*Server
	t      testing.TB
	base   string // http://127.0.0.1:PORT
	links  chan string
	client *http.Client
	stop   func() error
	access string // the file of tokens
	socket string // the path of the Unix socket; "": it is not on one
	job    event.JobID
}

func serve(t testing.TB, address string, hosts ...string) *served {
	t.Helper()
	return serveWith(t, address, func(c *Config) { c.Hosts = hosts })
}

// serveWith is serve with another configuration.
func serveWith(t testing.TB, address string, change func(c *Config)) *served {
	t.Helper()
	scenario := commandstest.New(t)
	jobs, err := scenario.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail", Payload: []byte("a")})
	if err != nil {
		t.Fatal(err)
	}
	scenario.Store.Now = time.Now
	s := &served{t: t, access: filepath.Join(t.TempDir(), "access"), job: jobs[0].ID,
		links: make(chan string, 4), client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	c := Config{Name: "jobs.db", Access: s.access,
		Config: door.Config{Store: scenario.Store, Now: time.Now, Report: t.Logf, Owner: "cli:ada@build7",
			Announce: func(link string) { s.links <- link }}}
	change(&c)
	s.Server = New(c)
	listener, err := door.Listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	s.base = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	s.stop = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
		s.client.CloseIdleConnections()
	})
	return s
}

// serveOnSocket is serveWith on a Unix socket.
func serveOnSocket(t testing.TB, change func(c *Config)) *served {
	t.Helper()
	folder, err := os.MkdirTemp("", "web") // a short path: a socket's has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	s := serveWith(t, "unix:"+path, change)
	s.base, s.socket = "http://localhost", path
	s.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	return s
}

// do sends a request; header has pairs of name and value.
func (s *served) do(method, path string, form url.Values, header ...string) (*http.Response, string) {
	s.t.Helper()
	if form != nil {
		header = append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)
	}
	return s.roundTrip(method, path, form.Encode(), header...)
}

// roundTrip sends a request with a body, and returns the answer and its body, which is read.
func (s *served) roundTrip(method, path, body string, header ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		switch header[i] {
		case "Host":
			r.Host = header[i+1]
		case "X-Forwarded-For": // there may be several
			r.Header.Add(header[i], header[i+1])
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.Header.Get("Content-Encoding") == "" && method != http.MethodHead && s.Server != nil {
		apitest.Answer(s.t, method, r.URL.Path, answer.StatusCode, answer.Header.Get("Content-Type"), string(text))
	}
	return answer, string(text)
}

// login begins a session, and returns its cookie and the code that it used.
func (s *served) login() (cookie, code string) {
	s.t.Helper()
	link := <-s.links
	_, code, _ = strings.Cut(link, "#")
	answer, body := s.do("POST", "/login", url.Values{"code": {code}})
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		s.t.Fatalf("login by %s: %s\n%s", link, answer.Status, body)
	}
	c := answer.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		s.t.Errorf("the cookie %s is not HttpOnly and SameSite=Strict", c)
	}
	return c.Name + "=" + c.Value, code
}

func TestRoutesNeedCredential(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	closed := 0
	for _, rt := range s.door.Routes() {
		method, path, found := strings.Cut(rt.Pattern, " ")
		if !found {
			method, path = "GET", "/nowhere"
		}
		path = strings.NewReplacer("{$}", "", "{job}", "01K", "{name}", "style.css").Replace(path)
		answer, _ := s.do(method, path, nil)
		status := answer.StatusCode
		refused := status == http.StatusUnauthorized ||
			status == http.StatusSeeOther && strings.HasPrefix(answer.Header.Get("Location"), "/login")
		if rt.Pattern == "POST /login/link" { // it leads there in any case
			refused = false
		}
		if refused != (rt.Needs != door.None) {
			t.Errorf("%s without a credential: %s", rt.Pattern, answer.Status)
		}
		if refused {
			closed++
		}
		if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy,
			"trusted-types 'none'") {
			t.Errorf("%s: policy %q", rt.Pattern, policy)
		}
		if rt.Streams {
			method = "HEAD" // the answer to GET has no end
		}
		if rt.Needs != door.None && method != "POST" {
			if answer, _ := s.do(method, path, nil, "Cookie", cookie); answer.StatusCode == http.StatusUnauthorized {
				t.Errorf("%s with a session: %s", rt.Pattern, answer.Status)
			}
		}
	}
	if closed < 10 {
		t.Errorf("only %d routes need a credential", closed)
	}
}

func TestGuardRefusesForeignRequests(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	own := strings.TrimPrefix(s.base, "http://")
	_, port, _ := net.SplitHostPort(own)
	for _, c := range []struct {
		name, method string
		header       []string
		want         int
	}{
		{"own", "GET", nil, 200},
		{"own name", "GET", []string{"Host", "jobledger.localhost:" + port}, 200},
		{"own page", "GET", []string{"Origin", s.base, "Sec-Fetch-Site", "same-origin"}, 200},
		{"rebound name", "GET", []string{"Host", "evil.example:" + port}, 421},
		{"rebound name of the same origin", "GET", []string{"Host", "evil.example:" + port, "Origin",
			"http://evil.example:" + port, "Sec-Fetch-Site", "same-origin"}, 421},
		{"no port", "GET", []string{"Host", "localhost"}, 421},
		{"foreign origin", "GET", []string{"Origin", "http://evil.example"}, 403},
		{"another port", "GET", []string{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"}, 403},
		{"foreign script", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"foreign link", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "document"}, 200},
		{"foreign form", "POST", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
			"Sec-Fetch-Dest", "document"}, 403},
		{"foreign form with a bearer", "POST", []string{"Origin", "null", "Authorization", "Bearer x"}, 403},
		{"method", "DELETE", nil, 405},
		{"post to a page", "POST", nil, 405},
	} {
		answer, body := s.do(c.method, "/", nil, append(c.header, "Cookie", cookie)...)
		if answer.StatusCode != c.want {
			t.Errorf("%s: %s, want %d\n%s", c.name, answer.Status, c.want, body)
		}
		if c.want >= 400 {
			var p door.Problem
			if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != c.want || p.Code == "" ||
				answer.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s: no problem: %s, %v", c.name, body, err)
			}
		}
	}
}

func TestLoginLinkWorksOnce(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, code := s.login()
	if answer, _ := s.do("GET", "/", nil, "Cookie", cookie); answer.StatusCode != http.StatusOK {
		t.Fatalf("with the session: %s", answer.Status)
	}
	if answer, body := s.do("POST", "/login",
		url.Values{"code": {code}}); answer.StatusCode != http.StatusForbidden ||
		!strings.Contains(body, "was used") {
		t.Errorf("the same link again: %s\n%s", answer.Status, body)
	}
	for range 5 - 1 {
		s.do("POST", "/login", url.Values{"code": {"guess"}})
	}
	if answer, _ := s.do("POST", "/login", url.Values{"code": {"guess"}}); answer.StatusCode != 429 {
		t.Errorf("too many guesses: %s", answer.Status)
	}
	if answer, _ := s.do("POST", "/login/link", nil); answer.StatusCode != 429 || len(s.links) > 0 {
		t.Errorf("another link at once: %s, %d links", answer.Status, len(s.links))
	}
	if answer, _ := s.do("POST", "/login",
		url.Values{"code": {strings.Repeat("x", 8<<10)}}); answer.StatusCode != 400 {
		t.Errorf("a form that is too large: %s", answer.Status)
	}
	s.do("POST", "/logout", nil, "Cookie", cookie)
	if answer, _ := s.do("GET", "/", nil, "Cookie", cookie); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("after the logout: %s", answer.Status)
	}
}

func TestMetricsAreWhatTheLedgerHas(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	_, text := s.do("GET", "/metrics", nil, "Cookie", cookie)
	var queues []status.Queue
	var pos, ready int64
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		if pos, err = tx.Tail(t.Context()); err != nil {
			return err
		}
		queues, err = status.Queues{At: projection.Now(time.Now())}.Read(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		ready += q.Ready
	}
	for _, line := range []string{
		fmt.Sprintf("jobledger_pos %d", pos),
		fmt.Sprintf(`jobledger_queue_ready_jobs{queue="mail"} %d`, ready),
		`jobledger_jobs{queue="mail",state="queued"} 1`,
		`jobledger_queue_paused{queue="mail"} 0`,
		"# TYPE jobledger_queue_oldest_ready_seconds gauge",
		"jobledger_leases_overdue 0",
		`jobledger_http_requests_total{route="/login",method="POST",status="303"} 1`,
		`jobledger_http_request_duration_seconds_bucket{route="/login",method="POST",le="+Inf"} 1`,
		`jobledger_http_request_duration_seconds_count{route="/login",method="POST"} 1`,
		"# TYPE process_start_time_seconds gauge", "# TYPE go_goroutines gauge",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

// What programs asked for, and is not a job yet, is a note of the overview and a metric.
func TestInboxIsOnOverviewAndInMetrics(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	err := s.Store.Write(t.Context(), func(tx *ledger.Tx) error {
		waits := inbox.Row{ID: "01J9Z3NDEKTSV4RRFFQ69G5FAV", Job: `{"queue":"mail"}`}
		for range 2 {
			if err := inbox.Refuse(tx, waits, "its key is <taken>"); err != nil {
				return err
			}
		}
		const insert = `INSERT INTO inbox (id, job, at) VALUES (?, '{"queue":"mail"}', ?)`
		_, err := tx.Exec(insert, "01J9Z3NDEKTSV4RRFFQ69G5FAW", event.Micros(time.Now().Add(-20*time.Minute)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, text := s.do("GET", "/metrics", nil, "Cookie", cookie)
	for _, line := range []string{"jobledger_inbox_rows 1", "jobledger_inbox_refused 2",
		"jobledger_inbox_oldest_seconds 1[2-9][0-9]{2}[0-9.]*", `jobledger_problems\{code="D49"\} 2`} {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(text) {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	_, text = s.do("GET", "/", nil, "Cookie", cookie)
	for _, part := range []string{"1 row of the inbox waits, the first for ",
		"<code class=\"remedy\">jobledger sweep</code>", "2 rows of the inbox were refused, the first ",
		": job 01J9Z3NDEKTSV4RRFFQ69G5FAV: its key is &lt;taken&gt;",
		"<code class=\"remedy\">jobledger inbox list --refused</code>"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

func TestOverviewShowsQueues(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	answer, text := s.do("GET", "/", nil, "Cookie", cookie)
	for _, part := range []string{">mail</a></th>", "jobs.db", ", pos 1."} {
		if !strings.Contains(text, part) {
			t.Errorf("%s: no %q in\n%s", answer.Status, part, text)
		}
	}
	for _, inline := range []string{"<style", " style=", " onclick=", "<script>"} {
		if strings.Contains(text, inline) {
			t.Errorf("the page has %q, which its policy forbids", inline)
		}
	}
	_, addresses := frame.Assets()
	for name, path := range addresses {
		if answer, _ := s.do("GET", path, nil); answer.StatusCode != http.StatusOK ||
			!strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %s", name, answer.Status)
		}
	}
}

func TestServerEndsWhenReplacedOrStopped(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	if answer, _ := s.do("GET", "/readyz", nil); answer.StatusCode != http.StatusOK {
		t.Errorf("ready: %s", answer.Status)
	}
	if err := s.stop(); err != nil {
		t.Errorf("stopped: %v", err)
	}
	lost := New(Config{Config: door.Config{Now: time.Now}})
	listener, err := door.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lost.door.ProblemOf(ledger.ErrReplaced)
	if err := lost.Serve(t.Context(), listener); err != ledger.ErrReplaced {
		t.Errorf("replaced: %v", err)
	}
}
