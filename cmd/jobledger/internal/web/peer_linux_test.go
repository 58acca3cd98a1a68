package web

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/door"
)

func TestUnixSocketNeedsNoLogin(t *testing.T) {
	s := serveOnSocket(t, func(*Config) {})
	path := s.socket
	if answer, body := s.do("GET", "/", nil); answer.StatusCode != http.StatusOK {
		t.Errorf("%s\n%s", answer.Status, body)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	if _, err := door.Listen(t.Context(), "unix:"+path); err == nil ||
		!strings.Contains(err.Error(), "another process") {
		t.Errorf("a second listener: %v", err)
	}
}
