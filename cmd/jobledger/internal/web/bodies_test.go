package web

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
)

// Many bodies of nothing but newlines cost little, and others are served next to them.
func TestEnqueueBodiesOfNewlines(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	hostile := s.create("hostile", []string{"q"}, access.Enqueue)
	good := s.create("good", []string{"mail"}, access.Enqueue)
	body := strings.Repeat("\n", 8<<20)
	pace := debug.SetGCPercent(100) // Go's own, not that of tests
	t.Cleanup(func() { debug.SetGCPercent(pace) })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			to := s.base + api.Root + "/jobs"
			r, err := http.NewRequestWithContext(t.Context(), "POST", to, strings.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", hostile)
			r.Header.Set("Content-Type", "application/x-ndjson")
			answer, err := s.client.Do(r)
			if err != nil { // it was answered before all was sent
				return
			}
			_ = answer.Body.Close()
			if answer.StatusCode != 413 && answer.StatusCode != 503 {
				t.Errorf("8 MiB of newlines: %s", answer.Status)
			}
		})
	}
	for range 20 {
		answer, text := s.roundTrip("POST", api.Root+"/jobs", `{"queue": "mail", "payload": "x"}`,
			"Authorization", good, "Content-Type", "application/json")
		if answer.StatusCode != 201 {
			t.Errorf("another token: %s, %s", answer.Status, text)
		}
	}
	all.Wait()
	runtime.ReadMemStats(&after)
	if grown := (after.HeapSys - before.HeapSys) >> 20; grown > 200 {
		t.Errorf("the heap has grown by %d MiB", grown)
	}
	t.Logf("the heap: %d MiB, then %d MiB", before.HeapSys>>20, after.HeapSys>>20)
}
