package door

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/cmd/jobledger/internal/web/access"
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
	ctx = withConn(ctx, conn)
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

// Peers are what other users may do on a Unix socket, by their ids.
type Peers map[int]access.Grant

// ParsePeers reads what users may do, each as in uid=1001:enqueue,work@mail,img-*: the id of a user, scopes,
// and queues.
func ParsePeers(texts []string) (Peers, error) {
	peers := make(Peers)
	for _, text := range texts {
		rest, isID := strings.CutPrefix(text, "uid=")
		id, rights, given := strings.Cut(rest, ":")
		scopes, queues, both := strings.Cut(rights, "@")
		uid, err := strconv.ParseUint(id, 10, 31)
		if !isID || !given || !both || err != nil {
			return nil, fault.WithHint(fault.Usagef("--peer: %.80q is not uid=ID:SCOPES@QUEUES", text),
				"as in --peer 'uid=1001:enqueue,work@mail,img-*'")
		}
		switch _, twice := peers[int(uid)]; {
		case twice:
			return nil, fault.Usagef("--peer: the user %d is there twice", uid)
		case int(uid) == os.Geteuid():
			return nil, fault.Usagef("--peer: the user %d runs the server, and may do everything", uid)
		}
		g := access.Grant{ID: "uid" + id, Name: "uid" + id}
		if u, err := user.LookupId(id); err == nil && access.CheckName(u.Username) == nil {
			g.Name = u.Username
		}
		for name := range strings.SplitSeq(scopes, ",") {
			scope, err := access.ParseScope(name)
			if err != nil {
				return nil, err
			}
			g.Scopes = append(g.Scopes, scope)
		}
		for name := range strings.SplitSeq(queues, ",") {
			if err := access.CheckPattern(name); err != nil {
				return nil, err
			}
			g.Queues = append(g.Queues, name)
		}
		peers[int(uid)] = g
	}
	return peers, nil
}

// peerOf returns the caller that r came from through a Unix socket, if it is one of d.Peers.
func (d *Door) peerOf(r *http.Request) (c Caller, ok bool) {
	p, ok := r.Context().Value(peerKey{}).(peer)
	if !ok || !p.known {
		return c, false
	}
	g, ok := d.Peers[p.uid]
	if !ok {
		return c, false
	}
	_, host, _ := strings.Cut(d.owner(), "@")
	return granted(g, "unix:"+g.Name+"@"+host), true
}
