package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands"
	"jobledger/commands/commandstest"
)

// A server whose streams have been behind the ledger for 10 seconds is not ready, until they have everything.
func TestServerIsNotReadyWhileStreamsAreBehind(t *testing.T) {
	t.Parallel()
	scenario := commandstest.New(t)
	s := New(Config{Config: door.Config{Store: scenario.Store, Now: time.Now}}) // its follower does not run
	now := time.Now()
	s.follower.Clock = func() time.Time { return now }
	ready := func() int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/readyz", nil)
		s.door.Handler().ServeHTTP(w, r)
		return w.Code
	}
	step := func(what string, forward time.Duration, want int, lag time.Duration) {
		t.Helper()
		now = now.Add(forward)
		if got, is := ready(), s.follower.Lag(scenario.Tail()); got != want || is != lag {
			t.Errorf("%s: %d with a lag of %s, want %d and %s", what, got, is, want, lag)
		}
	}
	if !s.follower.Join(await.SeenEnd{}) {
		t.Fatal("no stream")
	}
	step("nothing is recorded", time.Hour, 200, 0)
	if _, err := scenario.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"}); err != nil {
		t.Fatal(err)
	}
	s.follower.Leave()
	step("no stream is open", 0, 200, 0)
	s.follower.Join(await.SeenEnd{})
	step("behind by a little", 9*time.Second, 200, 9*time.Second)
	step("behind", time.Second, 503, 10*time.Second)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() {
		s.follower.Run(ctx, scenario.Store, func(err error) { t.Error(err) })
		close(ended)
	}()
	for deadline := time.Now().Add(10 * time.Second); ready() != 200; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it runs, and is not ready")
		}
	}
	s.follower.Leave() // which ends Run's loop, so that the clock can be changed
	stop()
	<-ended
	if !s.follower.Join(await.SeenEnd{Pos: scenario.Tail()}) {
		t.Fatal("no stream")
	}
	step("it has read everything", time.Hour, 200, 0)
	commandstest.Verify(t, scenario.Store)
}
