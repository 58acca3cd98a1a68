package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
)

// askLines asks for the events as lines.
func (s *served) askLines(token string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+"/api/v1/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/x-ndjson")
	r.Header.Set("Accept-Encoding", "identity") // what is compressed comes later
	r.Header.Set("Authorization", token)
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// Lines that break off are no whole answer to any client, and are not read on for a client that has gone.
func TestLinesThatBreakOff(t *testing.T) {
	t.Parallel()
	ended, fault := make(chan error, 1), make(chan bool)
	var endless atomic.Bool
	s := serve(t, "127.0.0.1:0")
	send := s.api.SendLines
	s.api.SendLines = func(w http.ResponseWriter, r *http.Request, pos int64,
		_ func(context.Context, io.Writer) error) error {
		return send(w, r, pos, func(ctx context.Context, out io.Writer) (err error) {
			for i := 0; err == nil && (endless.Load() || i < 1000); i++ {
				_, err = io.WriteString(out, strings.Repeat(" ", 1000)+"{}\n")
				err = errors.Join(err, ctx.Err())
			}
			ended <- err
			if err == nil {
				select {
				case <-fault:
				case <-ctx.Done():
				}
			}
			return errors.Join(err, errors.New("the disk has a fault"))
		})
	}
	reads := s.create("reads", []string{"*"}, access.Read)
	answer := s.askLines(reads)
	go func() { fault <- true }()
	text, err := io.ReadAll(answer.Body)
	if err == nil || strings.Count(string(text), "\n") < 100 || <-ended != nil {
		t.Errorf("%d bytes of lines that break off, %v", len(text), err)
	}
	endless.Store(true)
	gone := s.askLines(reads)
	if _, err := io.ReadFull(gone.Body, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	_ = gone.Body.Close()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("lines end without an error where the client has gone")
		}
	case <-time.After(20 * time.Second):
		t.Error("lines are read for a client that has gone")
	}
}
