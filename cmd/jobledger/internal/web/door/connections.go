package door

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Connections on which no valid credential came hold little: an address has few of them, they are idle for
// seconds only, and where room is needed the oldest is closed first.
const (
	maxUnproven  = 1024            // of one address: room for all that a host opens at once
	unprovenIdle = 5 * time.Second // after an answer
)

// LimitConnections returns l with at most n connections open at a time; further ones wait, unless one without
// a credential can be closed. An address for which several returns true, such as a proxy's, may have any
// number; nil: no address may.
func LimitConnections(l net.Listener, n int, several func(netip.Addr) bool) net.Listener {
	return &limited{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{}), several: several,
		unproven: list.New(), of: make(map[netip.Addr]int), idle: unprovenIdle}
}

type limited struct {
	net.Listener
	several func(netip.Addr) bool
	free    chan struct{} // has an element for each open connection
	closed  chan struct{}
	once    sync.Once
	idle    time.Duration // unprovenIdle; tests have less

	mu       sync.Mutex
	unproven *list.List         // of *limitedConn, the oldest first
	of       map[netip.Addr]int // how many of them an address has
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	default:
		l.closeOldest(func(*limitedConn) bool { return true })
		select {
		case l.free <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	c := &limitedConn{Conn: conn, l: l}
	if from, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		c.several = l.several != nil && l.several(from.Addr())
		l.add(c, placeOf(from.Addr()))
	}
	return c, nil
}

// placeOf is what counts as one address: of IPv6, a host has a whole /64.
func placeOf(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() {
		if prefix, err := a.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return a
}

// add takes in a new connection from an address, and closes the oldest one where that has too many.
func (l *limited) add(c *limitedConn, from netip.Addr) {
	l.mu.Lock()
	c.from, c.place = from, l.unproven.PushBack(c)
	l.of[from]++
	tooMany := !c.several && l.of[from] > maxUnproven
	l.mu.Unlock()
	if tooMany {
		l.closeOldest(func(other *limitedConn) bool { return other.from == from })
	}
}

// closeOldest closes the oldest connection without a credential for which is holds, and on which no request
// is being answered.
func (l *limited) closeOldest(is func(*limitedConn) bool) {
	l.mu.Lock()
	var oldest *limitedConn
	for e := l.unproven.Front(); e != nil && oldest == nil; e = e.Next() {
		if c := e.Value.(*limitedConn); c.requests == 0 && is(c) {
			oldest = c
		}
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is a connection of a limited.
type limitedConn struct {
	net.Conn
	l       *limited
	once    sync.Once
	from    netip.Addr
	several bool // there may be any number from there

	// l.mu guards these.
	place    *list.Element // nil: a credential came, or there is no address
	requests int           // that are being answered
	idle     *time.Timer
}

// forget takes c out of those without a credential.
func (c *limitedConn) forget() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.place == nil {
		return
	}
	c.l.unproven.Remove(c.place)
	c.place = nil
	if c.l.of[c.from]--; c.l.of[c.from] == 0 {
		delete(c.l.of, c.from)
	}
	if c.idle != nil {
		c.idle.Stop()
	}
}

// begins and ends take in a request.
func (c *limitedConn) begins() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.requests++
	if c.idle != nil {
		c.idle.Stop()
	}
}

func (c *limitedConn) ends() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.requests--
	if c.place == nil || c.requests > 0 || c.several {
		return
	}
	c.idle = time.AfterFunc(c.l.idle, func() {
		c.l.mu.Lock()
		idle := c.place != nil && c.requests == 0
		c.l.mu.Unlock()
		if idle {
			_ = c.Close()
		}
	})
}

// Close closes the connection, which makes room for another one.
func (c *limitedConn) Close() error {
	c.once.Do(func() {
		c.forget()
		<-c.l.free
	})
	return c.Conn.Close()
}

type connKey struct{}

// withConn keeps conn for the requests that come on it.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if c, ok := conn.(*limitedConn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// answering takes in that a request begins; end says that it is answered.
func answering(ctx context.Context) (end func()) {
	c, ok := ctx.Value(connKey{}).(*limitedConn)
	if !ok {
		return func() {}
	}
	c.begins()
	return c.ends
}

// proves takes in that a valid credential came.
func proves(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*limitedConn); ok {
		c.forget()
	}
}
