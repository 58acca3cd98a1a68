package web

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/door"
)

// Profiles are at an address of their own, for tokens with the scope admin, and what else must hold of
// requests holds there too.
func TestProfilesNeedScopeAdmin(t *testing.T) {
	t.Parallel()
	admin, err := door.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serveWith(t, "127.0.0.1:0", func(c *Config) { c.Admin = admin })
	cookie, _ := s.login()
	good := s.create("admin", []string{"*"}, access.Admin)
	some := s.create("some", []string{"mail"}, access.Admin)
	all := s.create("all", []string{"*"}, access.Read, access.Bodies, access.Enqueue, access.Work,
		access.Operate, access.Erase, access.Metrics)
	const path = "/debug/pprof/"
	if answer, _ := s.do("GET", path+"heap", nil, "Authorization", good); answer.StatusCode/100 == 2 {
		t.Errorf("a profile at the address for everything: %s", answer.Status)
	}
	s.base = "http://" + admin.Addr().String()
	for name, c := range map[string]struct {
		method, path string
		want         int
		header       []string
	}{
		"no credential":    {"GET", path + "heap", 401, nil},
		"session":          {"GET", path + "heap", 401, []string{"Cookie", cookie}},
		"all other scopes": {"GET", path + "heap", 403, []string{"Authorization", all}},
		"for some queues":  {"GET", path + "heap", 403, []string{"Authorization", some}},
		"foreign host":     {"GET", path + "heap", 421, []string{"Authorization", good, "Host", "evil.example"}},
		"foreign page": {"GET", path + "heap", 403, []string{"Authorization", good, "Origin",
			"http://evil.example"}},
		"method":             {"POST", path + "heap", 405, []string{"Authorization", good}},
		"another resource":   {"GET", "/jobs", 404, []string{"Authorization", good}},
		"no such profile":    {"GET", path + "cmdline", 404, []string{"Authorization", good}},
		"too long":           {"GET", path + "profile?seconds=301", 400, []string{"Authorization", good}},
		"too short":          {"GET", path + "trace?seconds=0", 400, []string{"Authorization", good}},
		"no number":          {"GET", path + "heap?debug=x", 400, []string{"Authorization", good}},
		"twice":              {"GET", path + "heap?debug=1&debug=2", 400, []string{"Authorization", good}},
		"unknown parameter":  {"GET", path + "heap?x=1", 400, []string{"Authorization", good}},
		"what there is":      {"GET", path, 200, []string{"Authorization", good}},
		"memory":             {"GET", path + "heap?gc=1", 200, []string{"Authorization", good}},
		"goroutines as text": {"GET", path + "goroutine?debug=2", 200, []string{"Authorization", good}},
		"trace":              {"GET", path + "trace?seconds=1", 200, []string{"Authorization", good}},
	} {
		answer, text := s.do(c.method, c.path, nil, c.header...)
		if answer.StatusCode != c.want {
			t.Errorf("%s: %s %.200s, want %d", name, answer.Status, text, c.want)
		}
	}
	if _, text := s.do("GET", path+"goroutine?debug=2", nil, "Authorization", good); !strings.Contains(text,
		"TestProfilesNeedScopeAdmin") {
		t.Errorf("the goroutines are %.500s", text)
	}
	_, text := s.do("GET", path+"heap", nil, "Authorization", good, "Accept-Encoding", "identity")
	if !bytes.HasPrefix([]byte(text), []byte{0x1f, 0x8b}) { // gzip, as pprof reads it
		t.Errorf("a profile for %s begins with %.20q", runtime.Version(), text)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if answer, err := s.client.Get(s.base + path); err == nil {
		_ = answer.Body.Close()
		t.Error("it is there after the end of the server")
	}
}
