package web

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/ledger"
)

// A server that was started while the ledger's file had a second name answers what writes with 503, and ends
// once that name has gone, so that it is started again and may write.
func TestServerOfLedgerWithSecondName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	made, err := ledger.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(made.Close(), os.Link(path, path+".second")); err != nil {
		t.Fatal(err)
	}
	store, err := ledger.OpenExisting(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s := &served{t: t, access: filepath.Join(t.TempDir(), "access"), client: new(http.Client)}
	s.Server = New(Config{Config: door.Config{Store: store, Now: time.Now, Report: t.Logf,
		Owner: "cli:ada@build7"}, Name: "jobs.db", Access: s.access})
	listener, err := door.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.base = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	token := s.create("p", []string{"*"}, access.Enqueue)
	for range 2 {
		status, text := s.post("POST", "/jobs", "application/json", `{"queue":"a"}`, "Authorization", token)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, "second name") {
			t.Errorf("a job: %d %s", status, text)
		}
	}
	if err := os.Remove(path + ".second"); err != nil {
		t.Fatal(err)
	}
	s.post("POST", "/jobs", "application/json", `{"queue":"a"}`, "Authorization", token)
	select {
	case err := <-ended:
		if !errors.Is(err, ledger.ErrSecondName) {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the server goes on, and only reads")
	}
	s.client.CloseIdleConnections()
}
