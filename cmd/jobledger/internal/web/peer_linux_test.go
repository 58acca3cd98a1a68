package web

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/door"
)

func TestUnixSocketNeedsNoLogin(t *testing.T) {
	folder, err := os.MkdirTemp("", "web") // a short path: a socket's has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	s := serve(t, "unix:"+path)
	s.base = "http://localhost"
	s.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	if answer, body := s.do("GET", "/", nil); answer.StatusCode != http.StatusOK {
		t.Errorf("%s\n%s", answer.Status, body)
	}
	for _, rt := range s.door.Routes() { // the user of the server has every right
		if rt.Needs == door.None {
			continue
		}
		method, route := s.requestOf(rt)
		answer, body := s.do(method, route, nil)
		if answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized ||
			answer.Header.Get("Location") == "/login" && route != "/logout" {
			t.Errorf("%s: %s %s", rt.Pattern, answer.Status, body)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	if _, err := door.Listen(t.Context(), "unix:"+path); err == nil ||
		!strings.Contains(err.Error(), "another process") {
		t.Errorf("a second listener: %v", err)
	}
}
