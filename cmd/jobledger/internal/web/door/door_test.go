package door

import (
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

func TestLoginsAndSessionsExpire(t *testing.T) {
	var l logins
	start := time.Now()
	code, _ := l.create("", start)
	if _, ok := l.create("192.0.2.1", start.Add(linkFresh-1)); ok {
		t.Error("a link is made while the last one can be used")
	}
	next, ok := l.create("192.0.2.1", start.Add(linkFresh))
	if old, _ := l.use(code, start.Add(linkLife)); !ok || !old {
		t.Errorf("after a new link %t, the old one is good: %t", ok, old)
	}
	if old, _ := l.use(code, start.Add(linkLife)); old {
		t.Error("a link is good twice")
	}
	if good, _ := l.use(next, start.Add(linkLife+linkFresh+1)); good {
		t.Error("a link is good for longer than its life")
	}
	at := start.Add(2 * time.Hour)
	for range maxLinks {
		at = at.Add(linkFresh)
		if _, ok := l.create("192.0.2.1", at); !ok {
			t.Fatal("a link is refused")
		}
	}
	at = at.Add(linkFresh)
	_, same := l.create("192.0.2.1", at)
	last, other := l.create("192.0.2.2", at)
	if good, _ := l.use(last, at); same || !other || !good {
		t.Errorf("after many links of an address, another one for it: %t; for another address: %t", same, other)
	}
	for _, c := range []struct {
		s    session
		over bool
	}{
		{session{start, start}, false},
		{session{start.Add(-sessionIdle - 1), start.Add(-sessionIdle - 1)}, true},
		{session{start.Add(-sessionLife - 1), start}, true},
	} {
		if got := c.s.over(start); got != c.over {
			t.Errorf("session %v is over: %t, want %t", c.s, got, c.over)
		}
	}
	var all sessions
	for i := range 3 * maxSessions {
		all.begin(start.Add(time.Duration(i)))
	}
	if len(all.all) > maxSessions {
		t.Errorf("%d sessions, want at most %d", len(all.all), maxSessions)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	inner, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := LimitConnections(inner, 1, nil)
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
	proves(withConn(t.Context(), first))
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

// A connection is closed when it is idle after an answer and no credential came on it.
func TestIdleConnectionsNeedACredential(t *testing.T) {
	inner, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := LimitConnections(inner, 2, nil)
	defer l.Close()
	l.(*limited).idle = 20 * time.Millisecond
	for _, known := range []bool{false, true} {
		client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ctx := withConn(t.Context(), conn)
		end := answering(ctx)
		if known {
			proves(ctx)
		}
		end()
		wait := 10 * time.Second
		if known {
			wait = 100 * time.Millisecond
		}
		_ = client.SetReadDeadline(time.Now().Add(wait))
		_, err = client.Read(make([]byte, 1))
		if kept := errors.Is(err, os.ErrDeadlineExceeded); kept != known {
			t.Errorf("a credential came: %t, kept: %t (%v)", known, kept, err)
		}
	}
}

func TestGzipAsAccepted(t *testing.T) {
	for header, want := range map[string]bool{"": false, "gzip": true, "GZIP ; q=1": true, "gzip;q=0": false,
		"gzip;q=0.000": false, "gzip;q=x": false, "deflate, gzip": true, "x-gzip": false} {
		if acceptsGzip(header) != want {
			t.Errorf("Accept-Encoding %q: %t", header, !want)
		}
	}
}

// A login leads to a path of this server, whatever it was asked to lead to.
func FuzzNextOf(f *testing.F) {
	for _, text := range []string{"/jobs?queue=mail", "//evil.example/", `/\evil.example`, "/jobs#x", "",
		"https://evil.example/", "/login", "/./login", "/%6cogin", "/\t/evil.example", "/.//evil.example",
		"/%2f/evil.example", "/jobs\x00"} {
		f.Add(text)
	}
	base, err := url.Parse("https://jobs.example.com/tools/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		next := NextOf(text)
		if next == "" {
			return
		}
		// A browser drops tabs and line feeds, and takes \ for /.
		read := strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(next)
		to, err := base.Parse(read)
		if err != nil || to.Scheme != base.Scheme || to.Host != base.Host || strings.HasPrefix(to.Path, "/login") {
			t.Errorf("%q leads to %v, %v", text, to, err)
		}
	})
}
