package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
)

// An answer is compressed where the client takes it, and left out where the client has it.
func TestAnswersCompressedAndConditional(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	cookie, _ := s.login()
	for _, path := range []string{"/api/v1/openapi.json", "/metrics", "/login"} {
		plain, text := s.do("GET", path, nil, "Cookie", cookie, "Accept-Encoding", "identity")
		answer, small := s.do("GET", path, nil, "Cookie", cookie, "Accept-Encoding", "br, gzip;q=0.5")
		if path == "/login" { // too small
			if answer.Header.Get("Content-Encoding") != "" || small != text {
				t.Errorf("%s is compressed: %v", path, answer.Header)
			}
		} else {
			z, err := gzip.NewReader(strings.NewReader(small))
			if err != nil || answer.Header.Get("Content-Encoding") != "gzip" || len(small) >= len(text) ||
				answer.Header.Get("Vary") != "Accept-Encoding" {
				t.Fatalf("%s: %v, %v", path, answer.Header, err)
			}
			if got, err := io.ReadAll(z); err != nil || path != "/metrics" && string(got) != text {
				t.Errorf("%s: %v\n%s, want\n%s", path, err, got, text)
			}
		}
		if path == "/metrics" { // it counts the requests
			continue
		}
		tag := plain.Header.Get("ETag")
		if tag == "" || tag != answer.Header.Get("ETag") {
			t.Errorf("%s: tags %q and %q", path, tag, answer.Header.Get("ETag"))
		}
		for header, want := range map[string]int{tag: 304, `"x", ` + tag: 304, strings.TrimPrefix(tag, "W/"): 304,
			"*": 304, `"x"`: 200} {
			again, body := s.do("GET", path, nil, "Cookie", cookie, "If-None-Match", header)
			if again.StatusCode != want || (body == "") != (want == 304) || again.Header.Get("ETag") != tag {
				t.Errorf("%s with %s: %s, %v", path, header, again.Status, again.Header)
			}
		}
	}
	refused, _ := s.do("GET", "/api/v1/nothing", nil, "Cookie", cookie, "If-None-Match", "*")
	if refused.StatusCode != http.StatusNotFound || refused.Header.Get("ETag") != "" {
		t.Errorf("an error with a tag: %s, %v", refused.Status, refused.Header)
	}
}
