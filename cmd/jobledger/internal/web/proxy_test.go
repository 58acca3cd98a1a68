package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
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
// show, and the server notices there too that a client has gone.
func TestLongPollsPassProxies(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program, block string // its configuration in the docs begins so
		start          func(folder, configuration string) *exec.Cmd
	}{
		{"nginx", "    server {\n", func(folder, configuration string) *exec.Cmd {
			for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
				configuration = name + "_temp_path " + filepath.Join(folder, name) + ";\n" + configuration
			}
			file := writeText(t, folder, "nginx.conf", "daemon off; master_process off; pid "+
				filepath.Join(folder, "pid")+"; error_log stderr; events {}\nhttp { access_log off;\n"+
				configuration+"}\n")
			return exec.Command("nginx", "-e", "stderr", "-p", folder, "-c", file)
		}},
		{"caddy", "    jobs.example.com {\n", func(folder, configuration string) *exec.Cmd {
			file := writeText(t, folder, "Caddyfile", "{\n admin off\n auto_https disable_redirects\n}\n"+
				configuration)
			caddy := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", file)
			caddy.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
			return caddy
		}},
	} {
		t.Run(c.program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.program); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal(err)
				}
				t.Skip(err) // most machines have neither
			}
			folder := t.TempDir()
			cert, key := writeCertificate(t, folder, 1, "localhost")
			public := freeAddress(t)
			_, port, _ := net.SplitHostPort(public)
			proxy, err := door.ParseProxy("https://localhost:"+port, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := serveWith(t, "127.0.0.1:0", func(c *Config) { c.Proxy = proxy })
			_, block, _ := strings.Cut(string(docs), c.block)
			block, _, _ = strings.Cut(block, "\n    }\n")
			block = c.block + block + "\n    }\n"
			block = strings.NewReplacer("127.0.0.1:8080", strings.TrimPrefix(s.base, "http://"), "443", port,
				"$host", "$http_host", "server.pem", cert, "server.key", key,
				"jobs.example.com {", "https://localhost:"+port+" {\n tls "+cert+" "+key, "jobs.example.com",
				"localhost").Replace(block)
			running := c.start(folder, block)
			running.Stdout, running.Stderr = t.Output(), t.Output()
			if err := running.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = running.Process.Kill()
				_ = running.Wait()
			}()
			s.throughProxy("https://localhost:"+port, cert)
		})
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

// freeAddress is an address on the loopback interface at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
