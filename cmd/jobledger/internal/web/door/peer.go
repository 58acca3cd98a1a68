package door

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
)

// peerKey is the key of a request's [peer] in its context.
type peerKey struct{}

// peer is what the system says about the other end of a Unix socket.
type peer struct {
	uid   int
	known bool
}

// WithPeer puts the peer of a connection into the context of its requests, and of an encrypted one what was
// found out about the client's certificate.
func WithPeer(ctx context.Context, conn net.Conn) context.Context {
	if _, encrypted := conn.(*tls.Conn); encrypted {
		return context.WithValue(ctx, checkedKey{}, new(checked))
	}
	if c, ok := conn.(*limitedConn); ok {
		conn = c.Conn
	}
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	uid, err := peerUID(unix)
	return context.WithValue(ctx, peerKey{}, peer{uid: uid, known: err == nil})
}

// samePeer reports whether r came through a Unix socket from a process of this user.
func samePeer(r *http.Request) bool {
	p, ok := r.Context().Value(peerKey{}).(peer)
	return ok && p.known && p.uid == os.Geteuid()
}
