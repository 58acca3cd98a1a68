package commandstest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Cutter stands between stores and their server. It can cut a connection at its COMMIT, and hold it up where
// it asks for the ledger's lock. It knows as much of the protocol as that takes
// (https://www.postgresql.org/docs/current/protocol-message-formats.html).
type Cutter struct {
	server string
	next   atomic.Int32 // a cut, of the next COMMIT
	Every  atomic.Int32 // every so many COMMITs are cut, in either way in turn; 0: none is
	seen   atomic.Int32
	Cuts   atomic.Int32
	held   atomic.Pointer[Held] // the next one that asks for the lock is held up; nil: none is
	conns  sync.Map             // of net.Conn, both ends
}

// Held is one who asks for the ledger's lock.
type Held struct{ Asks, GoesOn chan struct{} }

// Hold holds up the next one that asks for the lock.
func (c *Cutter) Hold() *Held {
	h := &Held{make(chan struct{}), make(chan struct{})}
	c.held.Store(h)
	return h
}

const (
	noCut     int32 = iota
	cutBefore       // the server never sees COMMIT
	cutAfter        // the server has committed, and its answer is lost
)

// NewCutter returns the address of the ledger at dsn by way of a cutter.
func NewCutter(t *testing.T, dsn string) (c *Cutter, through string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c = &Cutter{server: u.Host}
	u.Host = listener.Addr().String()
	options := u.Query()
	options.Set("sslmode", "disable") // or there is nothing to be seen
	u.RawQuery = options.Encode()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { c.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		c.conns.Range(func(conn, _ any) bool { _ = conn.(net.Conn).Close(); return true })
		running.Wait()
	})
	return c, u.String()
}

func (c *Cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	c.conns.Store(client, nil)
	c.conns.Store(server, nil)
	defer c.conns.Delete(client)
	defer c.conns.Delete(server)
	var cut atomic.Int32 // of this connection's COMMIT
	var both sync.WaitGroup
	both.Go(func() {
		defer server.Close()
		c.pass(client, server, true, &cut)
	})
	both.Go(func() {
		defer client.Close()
		c.pass(server, client, false, &cut)
	})
	both.Wait()
}

// pass forwards messages, until one of a COMMIT is to be cut.
func (c *Cutter) pass(from, to net.Conn, asks bool, cut *atomic.Int32) {
	in, out := bufio.NewReaderSize(from, 1<<16), bufio.NewWriterSize(to, 1<<16)
	prepared := make(map[string]string) // statements by their names
	for first := asks; ; first = false {
		message, err := readMessage(in, first)
		if err != nil {
			return
		}
		statement := ""
		if asks && !first {
			statement = statementOf(message, prepared)
		}
		switch {
		case strings.Contains(statement, "pg_advisory_xact_lock"):
			if h := c.held.Swap(nil); h != nil {
				close(h.Asks)
				<-h.GoesOn
			}
		case strings.EqualFold(statement, "COMMIT"):
			if cut.Store(c.judge()); cut.Load() == cutBefore {
				c.Cuts.Add(1)
				return
			}
		case !asks && cut.Load() == cutAfter && bytes.Equal(message[:1], []byte("C")) &&
			bytes.Equal(message[5:], []byte("COMMIT\x00")):
			c.Cuts.Add(1)
			return
		}
		if _, err := out.Write(message); err != nil {
			return
		}
		if in.Buffered() == 0 {
			if out.Flush() != nil {
				return
			}
		}
	}
}

// judge says what is to become of a COMMIT.
func (c *Cutter) judge() int32 {
	n, every := c.seen.Add(1), c.Every.Load()
	if every > 0 && n%every == 0 {
		return cutBefore + n/every%2
	}
	return c.next.Swap(noCut)
}

// Once lets the next COMMIT be v.
func (c *Cutter) Once(v Verdict) {
	c.next.Store(map[Verdict]int32{Heard: noCut, Undone: cutBefore, Unheard: cutAfter}[v])
}

func (c *Cutter) Hear() { c.next.Store(noCut) }

// readMessage reads a message; the first one of a client has no type.
func readMessage(r io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)
	_, err := io.ReadFull(r, rest)
	return append(head, rest...), err
}

// statementOf returns the statement that a message wants to be run; "" for another message.
func statementOf(message []byte, prepared map[string]string) string {
	field := func(n int) string { return string(bytes.Split(message[5:], []byte{0})[n]) }
	switch message[0] {
	case 'P':
		prepared[field(0)] = field(1)
	case 'B':
		return prepared[field(1)]
	case 'Q':
		return field(0)
	}
	return ""
}

// Seen counts the COMMITs so far.
func (c *Cutter) Seen() int { return int(c.seen.Load()) }
