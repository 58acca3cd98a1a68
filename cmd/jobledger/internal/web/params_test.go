package web

import (
	"net/http"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
)

// No address ignores a parameter that it does not have, nor a second value of one that it takes once: it
// says which there are. Only what probes and scrapers ask for does, as they may add some of their own.
func TestNoParameterIsIgnored(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	token := s.create("all", []string{"*"}, access.Scopes...)
	ignoring := map[string]bool{"GET /healthz": true, "GET /readyz": true, "GET /metrics": true,
		"GET /assets/{name}": true}
	for _, rt := range s.door.Routes() {
		method, path, found := strings.Cut(rt.Pattern, " ")
		if !found || method != http.MethodGet || ignoring[rt.Pattern] {
			continue
		}
		path = strings.NewReplacer("{$}", "", "{job}", string(s.job), "{queue}", "mail", "{pos}", "1",
			"{worker}", "alpha", "{attempt}", "1", "{report}", "causes", "{stream}", "out").Replace(path)
		credential := []string{"Cookie", cookie}
		if strings.HasPrefix(path, api.Root) {
			credential = []string{"Authorization", token}
		}
		for _, query := range []string{"?nonsense=1", "?at=pos:1&at=pos:1&from=a&from=b"} {
			answer, body := s.do(method, path+query, nil, credential...)
			if answer.StatusCode != http.StatusBadRequest {
				t.Errorf("GET %s%s: %s %.300s", path, query, answer.Status, body)
			}
			if !strings.Contains(body, "parameter") && !strings.Contains(body, "given") {
				t.Errorf("GET %s%s does not say which parameters there are: %.1000s", path, query, body)
			}
		}
	}
	for _, path := range []string{"/diff?queue=mail", "/diff?worker=w", "/diff?px=9", "/diff?limit=-1",
		"/series?worker=w", "/series?px=9", "/failures?px=9", "/depth?worker=w", "/incident?queue=mail"} {
		answer, body := s.do("GET", api.Root+path, nil, "Authorization", token)
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("GET %s: %s %s", path, answer.Status, body)
		}
	}
}
