package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/remote"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// A claim that waits, and a stream of events, go through each proxy with the configuration that the docs
// show, on a host of its own and below a path, and the server notices there too that a client has gone.
func TestLongPollsPassProxies(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := string(text)
	for _, c := range []struct {
		program                   string
		block, below, left, strip string // its configuration; that below a path; what removes the path
		start                     func(folder, configuration string) *exec.Cmd
	}{
		{"nginx", blockOf(t, docs, "    server {\n"), "", "proxy_pass http://127.0.0.1:8080;",
			"proxy_pass http://127.0.0.1:8080/;", startNginx(t)},
		{"caddy", blockOf(t, docs, "    jobs.example.com {\n"), blockOf(t, docs, "    tools.example.com {\n"),
			"handle /jobs/*", "handle_path /jobs/*", startCaddy(t)},
	} {
		if c.program == "nginx" {
			before, location, _ := strings.Cut(c.block, "        location / {\n")
			_, after, _ := strings.Cut(location, "        }\n")
			c.below = before + blockOf(t, docs, "    location /jobs/ {\n") + after
		}
		if !strings.Contains(docs, "`"+c.strip+"`") {
			t.Errorf("the docs do not have %s", c.strip)
		}
		for name, configuration := range map[string]string{"alone": c.block, "below a path": c.below,
			"path removed": strings.ReplaceAll(c.below, c.left, c.strip)} {
			t.Run(c.program+" "+name, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(c.program); err != nil {
					if os.Getenv("CI") == "true" {
						t.Fatal(err)
					}
					t.Skip(err) // most machines have neither
				}
				folder := t.TempDir()
				cert, key := writeCertificate(t, folder, 1, "localhost")
				_, port, _ := net.SplitHostPort(freeAddress(t))
				public := "https://localhost:" + port
				if name != "alone" {
					public += "/jobs"
				}
				proxy, err := door.ParseProxy(public, nil)
				if err != nil {
					t.Fatal(err)
				}
				s := serveWith(t, "127.0.0.1:0", func(c *Config) {
					c.Proxy, c.Prefix = proxy, door.Prefix{Path: proxy.Path, Stripped: name == "path removed"}
				})
				site := "https://localhost:" + port + " {\n tls " + cert + " " + key
				running := c.start(folder, strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(s.base, "http://"),
					"443", port, "$host", "$http_host", "server.pem", cert, "server.key", key,
					"jobs.example.com {", site, "tools.example.com {", site, "jobs.example.com", "localhost").
					Replace(configuration))
				running.Stdout, running.Stderr = t.Output(), t.Output()
				if err := running.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() {
					_ = running.Process.Kill()
					_ = running.Wait()
				}()
				s.throughProxy(public, cert)
				s.pageThroughProxy(public, proxy.Path)
			})
		}
	}
}

// blockOf is the part of the docs that begins so.
func blockOf(t *testing.T, docs, begin string) string {
	t.Helper()
	_, rest, found := strings.Cut(docs, "\n"+begin)
	rest, _, whole := strings.Cut(rest, "\n    }\n")
	if !found || !whole {
		t.Fatalf("the docs have no block %s", begin)
	}
	return begin + rest + "\n    }\n"
}

func startNginx(t *testing.T) func(folder, configuration string) *exec.Cmd {
	return func(folder, configuration string) *exec.Cmd {
		for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			configuration = name + "_temp_path " + filepath.Join(folder, name) + ";\n" + configuration
		}
		file := writeText(t, folder, "nginx.conf", "daemon off; master_process off; pid "+
			filepath.Join(folder, "pid")+"; error_log stderr; events {}\nhttp { access_log off;\n"+
			configuration+"}\n")
		return exec.Command("nginx", "-e", "stderr", "-p", folder, "-c", file)
	}
}

func startCaddy(t *testing.T) func(folder, configuration string) *exec.Cmd {
	return func(folder, configuration string) *exec.Cmd {
		file := writeText(t, folder, "Caddyfile", "{\n admin off\n auto_https disable_redirects\n}\n"+
			configuration)
		caddy := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", file)
		caddy.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
		return caddy
	}
}

// pageThroughProxy logs in through the proxy that is at public, and looks at a page.
func (s *served) pageThroughProxy(public, path string) {
	s.t.Helper()
	own := s.base
	defer func() { s.base = own }()
	s.base, s.client.Transport = public, with("")
	address, code, _ := strings.Cut(<-s.links, "#")
	if address != public+"/login" {
		s.t.Errorf("the login link is to %s, want %s/login", address, public)
	}
	origin := strings.TrimSuffix(public, path)
	answer, _ := s.do("POST", "/login", url.Values{"code": {code}}, "Origin", origin)
	cookies := answer.Cookies()
	if to := answer.Header.Get("Location"); to != path+"/" || len(cookies) != 1 {
		s.t.Fatalf("login: %s to %s", answer.Status, to)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	answer, text := s.do("GET", "/", nil, "Cookie", cookie)
	if answer.StatusCode != http.StatusOK || !strings.Contains(text, `href="`+path+`/lanes`) {
		s.t.Errorf("the overview: %s\n%.2000s", answer.Status, text)
	}
	answer, _ = s.do("GET", "/events/1", nil, "Cookie", cookie)
	if to := answer.Header.Get("Location"); !strings.HasPrefix(to, path+"/jobs/"+string(s.job)) {
		s.t.Errorf("an event leads to %s", to)
	}
}

// throughProxy is what must work through a proxy that is at public.
func (s *served) throughProxy(public, cert string) {
	s.t.Helper()
	t := s.t
	token := s.create("all", []string{"*"}, access.Enqueue, access.Work, access.Read)
	client, err := remote.New(remote.Config{URL: public, Token: strings.TrimPrefix(token, "Bearer "), CA: cert,
		Patience: time.Minute}) // the proxy starts meanwhile
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	claims := commands.ClaimRequest{Queues: []string{"later"}, Worker: event.Worker{Name: "w", Boot: "b"}}
	if jobs, err := client.Claim(t.Context(), claims); err != nil || len(jobs) != 0 {
		t.Fatalf("a claim that does not wait: %v, %v", jobs, err)
	}
	leaving, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := client.ClaimWithin(leaving, claims, time.Minute)
		gone <- err
	}()
	s.awaitWaiting(1)
	leave()
	<-gone
	s.awaitWaiting(0) // the server notices it

	events := s.streamOf(public, cert, token)
	got := make(chan []projection.Job)
	go func() {
		jobs, err := client.ClaimWithin(t.Context(), claims, time.Minute)
		if err != nil {
			t.Error(err)
		}
		got <- jobs
	}()
	s.awaitWaiting(1)
	payload := strings.Repeat("x", commands.MaxPayload-1)
	later := commands.Enqueue{Queue: "later", Payload: []byte(payload)}
	if _, err := client.Enqueue(t.Context(), "", later); err != nil {
		t.Fatal(err)
	}
	jobs := <-got
	if len(jobs) != 1 || string(jobs[0].Payload) != payload {
		t.Fatalf("claimed %d jobs", len(jobs))
	}
	for _, kind := range []string{"hello", "enqueued", "claimed"} {
		if text := <-events; text != kind {
			t.Errorf("an event %q, want %q", text, kind)
		}
	}
	commandstest.Verify(t, s.Store)
}

// awaitWaiting waits until so many requests wait at the server.
func (s *served) awaitWaiting(n int) {
	s.t.Helper()
	for s.work.Waiting() != n {
		if s.t.Context().Err() != nil {
			s.t.Fatalf("%d requests wait, not %d", s.work.Waiting(), n)
		}
		time.Sleep(5 * time.Millisecond) // no event says that a request waits
	}
}

// streamOf reads the kinds of a stream of events.
func (s *served) streamOf(public, cert, token string) <-chan string {
	s.t.Helper()
	pem, err := os.ReadFile(cert)
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", public+api.Root+"/events/stream?queue=later", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", token)
	answer, err := transport.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatal(answer, err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	kinds := make(chan string, 8)
	go func() {
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				kinds <- kind
			}
		}
		close(kinds)
	}()
	return kinds
}

func writeText(t *testing.T, folder, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// freeAddress is an address on the loopback interface at which nothing listens. Its port is not one of those
// that systems pick for port 0, which others could get meanwhile.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20_000+rand.IntN(12_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}
