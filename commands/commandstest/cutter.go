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

// Cutter is a relay between stores and their server. It can cut a connection at its COMMIT, and delay it when
// it requests the ledger's lock. It understands as much of the protocol as that needs
// (https://www.postgresql.org/docs/current/protocol-message-formats.html).
type Cutter struct {
	server atomic.Pointer[string] // host and port
	next   atomic.Int32           // the cut of the next COMMIT
	Every  atomic.Int32           // every so many COMMITs are cut, before and after alternately; 0: none
	seen   atomic.Int32
	Cuts   atomic.Int32
	held   atomic.Pointer[Held]          // delays the next request for the lock; nil: none
	late   atomic.Pointer[chan struct{}] // closed by the next request for the lock; nil: no COMMIT waits for it
	conns  sync.Map                      // of net.Conn, both ends
}

// Held is a request for the ledger's lock that is delayed.
type Held struct{ Asks, GoesOn chan struct{} }

// Hold delays the next request for the lock.
func (c *Cutter) Hold() *Held {
	h := &Held{make(chan struct{}), make(chan struct{})}
	c.held.Store(h)
	return h
}

const (
	noCut     int32 = iota
	cutBefore       // the server never sees COMMIT
	cutAfter        // the server has committed, and its answer is lost
	cutLate         // the connection breaks, and the server commits only when another requests the lock
)

// NewCutter returns the address of the ledger at dsn through a cutter.
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
	c = &Cutter{}
	server := u.Host
	c.server.Store(&server)
	u.Host = listener.Addr().String()
	options := u.Query()
	options.Set("sslmode", "disable") // otherwise the messages are encrypted
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
		c.lockRequested()
		running.Wait()
	})
	return c, u.String()
}

func (c *Cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", *c.server.Load())
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

// pass forwards messages until one of a COMMIT has to be cut.
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
		case strings.HasPrefix(statement, "LOCK TABLE write_lock"):
			if h := c.held.Swap(nil); h != nil {
				close(h.Asks)
				<-h.GoesOn
			}
			c.lockRequested()
		case strings.EqualFold(statement, "COMMIT"):
			if cut.Store(c.nextCut()); cut.Load() == cutBefore {
				c.Cuts.Add(1)
				return
			}
			if late := make(chan struct{}); cut.Load() == cutLate && c.late.CompareAndSwap(nil, &late) {
				c.Cuts.Add(1)
				commitLate(message, in, from, out, late)
				return
			}
		case !asks && cut.Load() == cutAfter && message[0] == 'C' && bytes.Equal(message[5:], []byte("COMMIT\x00")):
			c.Cuts.Add(1)
			return
		case !asks && cut.Load() == cutAfter && message[0] == 'E': // a burst whose COMMIT was not carried out
			cut.Store(noCut)
			c.next.CompareAndSwap(noCut, cutAfter)
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

// commitLate breaks the connection of the client, and passes its COMMIT on once late is closed: a server may
// be slower to commit than a client is to notice that the connection is gone.
func commitLate(commit []byte, in io.Reader, client io.Closer, server *bufio.Writer, late <-chan struct{}) {
	rest := commit
	for message := commit; message[0] != 'Q' && message[0] != 'S'; rest = append(rest, message...) {
		var err error
		if message, err = readMessage(in, false); err != nil {
			return
		}
	}
	if server.Flush() != nil {
		return
	}
	_ = client.Close()
	<-late
	if _, err := server.Write(rest); err == nil {
		_ = server.Flush()
	}
}

// lockRequested lets a late COMMIT pass.
func (c *Cutter) lockRequested() {
	if late := c.late.Swap(nil); late != nil {
		close(*late)
	}
}

// nextCut returns the cut of a COMMIT.
func (c *Cutter) nextCut() int32 {
	n, every := c.seen.Add(1), c.Every.Load()
	if every > 0 && n%every == 0 {
		return cutBefore + n/every%2
	}
	return c.next.Swap(noCut)
}

// Redirect breaks all connections. New connections go to the server of dsn.
func (c *Cutter) Redirect(t *testing.T, dsn string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	c.server.Store(&u.Host)
	c.conns.Range(func(conn, _ any) bool { _ = conn.(net.Conn).Close(); return true })
}

// Once makes v the outcome of the next COMMIT.
func (c *Cutter) Once(v CommitOutcome) {
	c.next.Store(map[CommitOutcome]int32{Acknowledged: noCut, RolledBack: cutBefore,
		Unacknowledged: cutAfter, CommittedLate: cutLate}[v])
}

// AcknowledgeAll lets all later COMMITs succeed.
func (c *Cutter) AcknowledgeAll() { c.next.Store(noCut) }

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

// statementOf returns the statement that a message asks to run, or "".
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

// Seen returns the number of COMMITs so far.
func (c *Cutter) Seen() int { return int(c.seen.Load()) }
