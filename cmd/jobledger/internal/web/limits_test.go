package web

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
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

func TestConnectionsAreLimited(t *testing.T) {
	inner, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limitConnections(inner, 1)
	dial := func() net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	dial()
	dial()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	go func() {
		c, _ := l.Accept()
		accepted <- c
	}()
	select {
	case <-accepted:
		t.Fatal("a second connection was accepted while the first was open")
	case <-time.After(20 * time.Millisecond):
	}
	_ = first.Close()
	_ = first.Close() // it counts once
	if second := <-accepted; second == nil {
		t.Error("the second connection was not accepted after the first had ended")
	}
	_ = l.Close()
	if _, err := l.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
}

// TestHeadersAreLimited sends more than a server that closes the connection may let it send.
func TestHeadersAreLimited(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Large", strings.Repeat("x", 2*maxHeader))
	answer, err := s.client.Do(r)
	if err != nil {
		return // cut off
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of %d bytes: %s", 2*maxHeader, answer.Status)
	}
}
