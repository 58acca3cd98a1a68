package web

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/door"
)

func TestSlowClientHoldsUpNoOther(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: "); err != nil {
		t.Fatal(err)
	}
	if answer, _ := s.do("GET", "/healthz", nil); answer.StatusCode != http.StatusOK {
		t.Errorf("another client: %s", answer.Status)
	}
	if _, err := io.ReadAll(conn); err != nil { // the server gives up after headerTimeout
		t.Errorf("the slow client: %v", err)
	}
}

// TestHeadersAreLimited sends more than a server that closes the connection may let it send.
func TestHeadersAreLimited(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Large", strings.Repeat("x", 2*door.MaxHeader))
	answer, err := s.client.Do(r)
	if err != nil {
		return // cut off
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of %d bytes: %s", 2*door.MaxHeader, answer.Status)
	}
}
