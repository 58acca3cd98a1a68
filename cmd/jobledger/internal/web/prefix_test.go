package web

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/cmd/jobledger/internal/web/frame"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/remote"
	"jobledger/ledger/event"
)

// addressIn is an attribute of a page with an address.
var addressIn = regexp.MustCompile(` (href|action|src|data-stream|data-lanes)="([^"]*)"`)

// Behind a proxy that has the server below a path, and removes that from requests or not, each address that
// the server gives begins with it: of links, forms, files, streams and data in pages, of redirects, in
// answers for programs and in cookies. Clients whose URL has the path work.
func TestPrefixIsInEveryAddress(t *testing.T) {
	t.Parallel()
	for _, stripped := range []bool{false, true} {
		t.Run(fmt.Sprintf("stripped=%t", stripped), func(t *testing.T) {
			t.Parallel()
			var target *url.URL
			front := httptest.NewUnstartedServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(
				r *httputil.ProxyRequest) {
				if stripped {
					r.Out.URL.Path = strings.TrimPrefix(r.Out.URL.Path, "/tools/jobs")
					r.Out.URL.RawPath = strings.TrimPrefix(r.Out.URL.RawPath, "/tools/jobs")
				}
				r.SetURL(target)
				r.Out.Host = r.In.Host
			}})
			front.StartTLS()
			t.Cleanup(front.Close)
			public := front.URL + "/tools/jobs"
			proxy, err := door.ParseProxy(public+"/", nil)
			if err != nil || proxy.Path != "/tools/jobs" {
				t.Fatal(proxy, err)
			}
			s := serveWith(t, "127.0.0.1:0", func(c *Config) {
				c.Proxy, c.Prefix = proxy, door.Prefix{Path: proxy.Path, Stripped: stripped}
				more := make([]commands.Enqueue, 2)
				more[0].Queue, more[1].Queue = "other", "other"
				service := &commands.Service{Store: c.Store}
				if _, err := service.Enqueue(t.Context(), "cli:test", more...); err != nil {
					t.Fatal(err)
				}
			})
			if target, err = url.Parse(s.base); err != nil {
				t.Fatal(err)
			}
			b := &behind{t: t, s: s, public: public, client: front.Client()}
			b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			b.login()
			b.walk()
			b.answers(stripped)
			b.work(front)
			commandstest.Verify(t, s.Store)
		})
	}
}

// behind is a server as it is seen through its proxy.
type behind struct {
	t      *testing.T
	s      *served
	public string
	client *http.Client
}

func (b *behind) do(method, address, body string, header ...string) (*http.Response, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer, string(text)
}

// login begins a session by the link that the server prints.
func (b *behind) login() {
	b.t.Helper()
	const next = "/tools/jobs/login?next=%2Flanes" // the prefix is added where it leads there
	if answer, _ := b.do("GET", b.public+"/lanes", ""); answer.Header.Get("Location") != next {
		b.t.Errorf("without a session: %s to %q", answer.Status, answer.Header.Get("Location"))
	}
	address, code, _ := strings.Cut(<-b.s.links, "#")
	if address != b.public+"/login" {
		b.t.Errorf("the link is to %s, want %s/login", address, b.public)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.client.Jar = jar
	answer, _ := b.do("POST", address, url.Values{"code": {code}}.Encode(), "Content-Type",
		"application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	cookies := answer.Cookies()
	if answer.Header.Get("Location") != "/tools/jobs/" || len(cookies) != 1 ||
		cookies[0].Path != "/tools/jobs" ||
		!strings.HasPrefix(cookies[0].Name, "__Secure-") || !cookies[0].Secure {
		b.t.Fatalf("login: %s to %q, %v", answer.Status, answer.Header.Get("Location"), cookies)
	}
}

// walk follows the addresses in the pages.
func (b *behind) walk() {
	b.t.Helper()
	host := strings.TrimSuffix(b.public, "/tools/jobs")
	seen := map[string]bool{}
	paths := []string{"/tools/jobs"}
	streams := 0
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		if path, _, _ = strings.Cut(path, "#"); seen[path] || len(seen) > 80 {
			continue
		}
		seen[path] = true
		answer, text := b.do("GET", host+path, "")
		if to := answer.Header.Get("Location"); answer.StatusCode == http.StatusSeeOther &&
			strings.HasPrefix(to, "/tools/jobs/") { // from an event to its job
			paths = append(paths, to)
			continue
		}
		if answer.StatusCode != http.StatusOK {
			b.t.Errorf("%s: %s", path, answer.Status)
		}
		if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			continue
		}
		if !strings.Contains(text, `data-prefix="/tools/jobs"`) {
			b.t.Errorf("%s does not have the prefix for its scripts", path)
		}
		for _, found := range addressIn.FindAllStringSubmatch(text, -1) {
			name, to := found[1], strings.ReplaceAll(found[2], "&amp;", "&")
			switch {
			case to == "" || strings.HasPrefix(to, "#"):
			case !strings.HasPrefix(to, "/tools/jobs/"):
				b.t.Errorf("%s has %s=%q", path, name, to)
			case name == "data-stream":
				streams++
				b.stream(host + to)
			case name != "action":
				paths = append(paths, to)
			}
		}
	}
	if len(seen) < 30 || streams == 0 {
		b.t.Errorf("%d addresses, %d streams", len(seen), streams)
	}
	_, addresses := frame.Assets()
	for _, path := range addresses {
		if _, text := b.do("GET", b.public+path, ""); strings.HasSuffix(path, ".js") {
			for line := range strings.Lines(text) {
				if literal.MatchString(line) && !strings.Contains(line, "prefix") {
					b.t.Errorf("%s has an address without the prefix: %s", path, line)
				}
			}
		}
	}
}

// literal is an address in a script; that of the keys gets its prefix later.
var literal = regexp.MustCompile("^[^{]*[\"'`]/[a-z?]")

// stream reads the beginning of a stream of events.
func (b *behind) stream(address string) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if lines.Text() == "event: hello" {
			return
		}
	}
	b.t.Errorf("%s: %s, and no hello", address, answer.Status)
}

// answers looks at redirects, refusals and what programs get.
func (b *behind) answers(stripped bool) {
	b.t.Helper()
	host := strings.TrimSuffix(b.public, "/tools/jobs")
	for path, want := range map[string]string{"/events/1": "/tools/jobs/jobs/" + string(b.s.job) + "#e1",
		"//status": "/tools/jobs/status"} {
		if answer, _ := b.do("GET", b.public+path, ""); answer.Header.Get("Location") != want {
			b.t.Errorf("%s leads to %q, want %q", path, answer.Header.Get("Location"), want)
		}
	}
	answer, text := b.do("GET", b.public+api.Root+"/events?limit=2", "")
	if next := `"/tools/jobs/api/v1/events?after=2`; !strings.Contains(text, next) ||
		!strings.HasPrefix(answer.Header.Get("Link"), "<"+next[1:]) {
		b.t.Errorf("the next page: %q, %s", answer.Header.Get("Link"), text)
	}
	var document struct {
		Servers []struct{ URL string }
		Paths   map[string]any
	}
	_, text = b.do("GET", b.public+api.Root+"/openapi.json", "")
	if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Servers) != 1 ||
		document.Servers[0].URL != "/tools/jobs" || document.Paths[api.Root+"/status"] == nil {
		b.t.Errorf("the document: %v, %v", err, document.Servers)
	}
	if _, text = b.do("GET", b.public+"/api", ""); !strings.Contains(html.UnescapeString(text),
		`"`+b.public+api.Root+`/status"`) {
		b.t.Errorf("the page of the API has no command for %s", b.public)
	}
	for origin, want := range map[string]int{"https://evil.example": http.StatusForbidden,
		host: http.StatusSeeOther} {
		answer, _ := b.do("POST", b.public+"/integrity", "", "Origin", origin)
		if answer.StatusCode != want {
			b.t.Errorf("a form from %s: %s, want %d", origin, answer.Status, want)
		}
		if to := answer.Header.Get("Location"); want == http.StatusSeeOther && to != "/tools/jobs/integrity" {
			b.t.Errorf("the form leads to %q", to)
		}
	}
	for path, want := range map[string]int{"/": http.StatusNotFound, "/tools/jobsx/": http.StatusNotFound,
		"/lanes": http.StatusNotFound, "/healthz": http.StatusOK} {
		answer, text := b.s.do("GET", path, nil)
		if stripped && path != "/healthz" {
			continue // it is a path like any other
		}
		if answer.StatusCode != want || want == http.StatusNotFound && !strings.Contains(text, "/tools/jobs/") {
			b.t.Errorf("%s, without the proxy: %s, want %d", path, answer.Status, want)
		}
	}
	if answer, _ := b.s.do("POST", "/tools/jobs/lanes", nil); answer.StatusCode != http.StatusMethodNotAllowed {
		b.t.Errorf("POST on a page: %s", answer.Status)
	}
}

// work has a producer and a worker whose URL has the path.
func (b *behind) work(front *httptest.Server) {
	b.t.Helper()
	ca := filepath.Join(b.t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		b.t.Fatal(err)
	}
	token := strings.TrimPrefix(b.s.create("w", []string{"*"}, access.Enqueue, access.Work), "Bearer ")
	client, err := remote.New(remote.Config{URL: b.public + "/", Token: token, CA: ca})
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	job := commands.Enqueue{Queue: "q", Payload: []byte("x")}
	if _, err := client.Enqueue(b.t.Context(), "", job); err != nil {
		b.t.Fatal(err)
	}
	jobs, err := client.Claim(b.t.Context(), commands.ClaimRequest{Queues: []string{"q"},
		Worker: event.Worker{Name: "w", Boot: "b"}})
	if err != nil || len(jobs) != 1 {
		b.t.Fatal(jobs, err)
	}
	b.client.Jar = nil
	answer, _ := b.do("POST", b.public+api.Root+"/queues/q/jobs", "y", "Authorization", "Bearer "+token,
		"Content-Type", "application/octet-stream")
	if to := answer.Header.Get("Location"); !strings.HasPrefix(to, "/tools/jobs/api/v1/jobs/") {
		b.t.Errorf("a job that was enqueued is at %q: %s", to, answer.Status)
	}
}

func TestPrefixIsRefused(t *testing.T) {
	for _, text := range []string{"jobs", "/jobs/", "//", "/", "/a//b", "/a/../b", "/.", "/a b", "/a%20b", "/ä",
		"/" + strings.Repeat("x", 200), `/"`} {
		if p, err := door.ParsePrefix(text); err == nil {
			t.Errorf("%q is taken as %q", text, p)
		}
	}
	for _, text := range []string{"", "/jobs", "/a/b-1_.~"} {
		if p, err := door.ParsePrefix(text); err != nil || p != text {
			t.Errorf("%q: %q, %v", text, p, err)
		}
	}
	for _, text := range []string{"https://h/a b", "https://h/../x", "http://h/jobs", "https://h/jobs?x=1"} {
		if _, err := door.ParseProxy(text, nil); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
