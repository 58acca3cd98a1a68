package door

import (
	"context"
	"net/http"
	"os"
	"testing"
)

func TestPeerIsTheSameUser(t *testing.T) {
	other := context.WithValue(t.Context(), peerKey{}, peer{uid: os.Geteuid() + 1, known: true})
	if samePeer((&http.Request{}).WithContext(other)) {
		t.Error("another user is let in")
	}
}
