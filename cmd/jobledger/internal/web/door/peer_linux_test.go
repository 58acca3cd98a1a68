package door

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
)

// from is a request that came through a Unix socket from a process of this user.
func from(t *testing.T, uid int, known bool) *http.Request {
	return (&http.Request{}).WithContext(context.WithValue(t.Context(), peerKey{}, peer{uid: uid, known: known}))
}

func TestPeerIsTheSameUser(t *testing.T) {
	if samePeer(from(t, os.Geteuid()+1, true)) {
		t.Error("another user is let in")
	}
}

// Another user on a Unix socket may do what --peer says of it, and one who is not named nothing.
func TestPeerIsNamed(t *testing.T) {
	other, third := os.Geteuid()+1, os.Geteuid()+2
	peers, err := ParsePeers([]string{"uid=" + strconv.Itoa(other) + ":enqueue,work@mail,img-*"})
	if err != nil {
		t.Fatal(err)
	}
	d := New(Config{Owner: "cli:ada@build7", Peers: peers})
	c, ok, err := d.Caller(from(t, other, true))
	if !ok || err != nil || c.Rights != Enqueue|Work || !c.May(access.Work, "img-1") ||
		c.May(access.Work, "other") || c.AllQueues() || !strings.HasPrefix(c.Actor, "unix:") ||
		!strings.HasSuffix(c.Actor, "@build7") {
		t.Errorf("the caller is %+v, %t, %v", c, ok, err)
	}
	for name, r := range map[string]*http.Request{"one who is not named": from(t, third, true),
		"one of whom the system says nothing": from(t, other, false), "one over TCP": {}} {
		if c, ok, err := d.Caller(r); ok || err != nil {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	c, ok, _ = d.Caller(from(t, os.Geteuid(), true))
	if !ok || c.Rights != owned || !c.AllQueues() {
		t.Errorf("the user of the server: %+v, %t", c, ok)
	}
}

func TestPeerIsParsed(t *testing.T) {
	own := "uid=" + strconv.Itoa(os.Geteuid()) + ":read@*"
	for _, text := range []string{"", "1001:read@a", "uid=1001", "uid=1001:read", "uid=1001:@a",
		"uid=1001:read@",
		"uid=-1:read@a", "uid=99999999999:read@a", "uid=1001:read@a,,b", "uid=1001:read@a*b", own} {
		if peers, err := ParsePeers([]string{text}); err == nil {
			t.Errorf("%q is taken as %v", text, peers)
		}
	}
}
