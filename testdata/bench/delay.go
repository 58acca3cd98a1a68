package main

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"time"
)

// delayed listens for clients of the server at address, adds delay to each round trip with it, and returns the
// address for them. stop ends it and its connections. It delays each piece of data by half of that in either
// direction, and holds none up because of the one before.
func delayed(ctx context.Context, address string, delay time.Duration) (through string, stop func(), err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := u.Host
	u.Host = listener.Addr().String()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { relay(ctx, client, server, delay/2) })
		}
	})
	return u.String(), func() {
		cancel()
		_ = listener.Close()
		running.Wait()
	}, nil
}

// relay connects client with server until either of them hangs up, or ctx ends.
func relay(ctx context.Context, client net.Conn, server string, delay time.Duration) {
	defer client.Close()
	var dialer net.Dialer
	to, err := dialer.DialContext(ctx, "tcp", server)
	if err != nil {
		return
	}
	defer to.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = to.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { pass(to, client, delay); _ = to.Close() })
	both.Go(func() { pass(client, to, delay); _ = client.Close() })
	both.Wait()
}

// piece is what one read returned, and when it may be written.
type piece struct {
	data []byte
	at   time.Time
}

// pass copies, with a delay.
func pass(to io.Writer, from io.Reader, delay time.Duration) {
	pieces := make(chan piece, 1024)
	var writing sync.WaitGroup
	writing.Go(func() {
		for p := range pieces {
			if wait := time.Until(p.at); wait > 0 {
				time.Sleep(wait) // the delay that is measured
			}
			if _, err := to.Write(p.data); err != nil {
				for range pieces { // so that the reader does not wait
				}
				return
			}
		}
	})
	for {
		buf := make([]byte, 32<<10)
		n, err := from.Read(buf)
		if n > 0 {
			pieces <- piece{buf[:n], time.Now().Add(delay)}
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	writing.Wait()
}
