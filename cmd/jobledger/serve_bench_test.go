package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/view"
	"jobledger/ledger"
	"jobledger/projection"
	"jobledger/projection/query"
)

// BenchmarkServe answers requests about a large ledger. Run it with go test ./cmd/jobledger -run '^$' -bench
// Serve [-large FILE]. bytes is the size of an answer, which has not been compressed.
func BenchmarkServe(b *testing.B) {
	g := openLarge(b)
	g.addKeyframes(b)
	now := func() time.Time { return g.end.Add(time.Second) }
	get := benchClient(b, g.store, now)
	day := url.Values{"from": {g.end.Add(-24 * time.Hour).UTC().Format(time.RFC3339)},
		"to": {g.end.UTC().Format(time.RFC3339)}}.Encode()
	hour := url.Values{"from": {g.end.Add(-time.Hour).UTC().Format(time.RFC3339)},
		"to": {g.end.UTC().Format(time.RFC3339)}}.Encode()
	month := url.Values{"from": {g.end.Add(-30 * 24 * time.Hour).UTC().Format(time.RFC3339)},
		"to": {g.end.UTC().Format(time.RFC3339)}}.Encode()
	for _, c := range []struct{ name, path string }{
		{"overview", "/"}, {"overview/past", "/?at=pos:500000"}, {"metrics", "/metrics"},
		{"lanes/hour", "/api/v1/lanes?px=1200&" + hour}, {"lanes/day", "/api/v1/lanes?px=1200&" + day},
		{"lanes/page", "/lanes?" + hour}, {"failures", "/failures?" + hour}, {"workers", "/workers"},
		{"queue", "/queues/mail?" + hour}, {"diff", "/diff?" + hour}, {"jobs", "/jobs?limit=50"},
		{"moments", "/api/v1/moments?px=1200"}, {"series/hour", "/api/v1/series?" + hour},
		{"series/month", "/api/v1/series?" + month},
		{"series/queue", "/api/v1/series?queue=mail&" + month},
	} {
		b.Run(c.name, func(b *testing.B) {
			size := get(b, c.path)
			for b.Loop() {
				size = get(b, c.path)
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// BenchmarkServeMoments reads a whole ledger for the marks of the bar: the time of one event.
func BenchmarkServeMoments(b *testing.B) {
	g := openLarge(b)
	for b.Loop() {
		var m view.Moments
		read := int64(0)
		for range 1000 { // each call reads at most so many
			err := g.store.Read(b.Context(), func(tx *ledger.Tx) error { return m.Refresh(b.Context(), tx) })
			if err != nil {
				b.Fatal(err)
			}
			if read = m.Pos(); read == g.tail {
				break
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(g.tail), "ns/event")
}

// BenchmarkServeTotals reads a whole ledger for the counters of the metrics: the time of one event.
func BenchmarkServeTotals(b *testing.B) {
	g := openLarge(b)
	for b.Loop() {
		var totals view.Totals
		for whole := false; !whole; {
			err := g.store.Read(b.Context(), func(tx *ledger.Tx) (err error) {
				_, whole, err = totals.Refresh(b.Context(), tx, func(map[string]*view.QueueTotals) {})
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(g.tail), "ns/event")
}

// BenchmarkServeLanesJoin joins the claims of a day with 260,000 of them.
func BenchmarkServeLanesJoin(b *testing.B) {
	g := openLarge(b)
	var lanes *query.LaneChart
	for b.Loop() {
		err := g.store.Read(b.Context(), func(tx *ledger.Tx) (err error) {
			s := query.Lanes{Columns: 1200}
			if s.From, err = projection.AtTime(b.Context(), tx, g.begin); err != nil {
				return err
			}
			if s.To, err = projection.AtTime(b.Context(), tx, g.end); err != nil {
				return err
			}
			lanes, err = s.Read(b.Context(), tx)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	text, err := json.Marshal(lanes)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(text)), "bytes")
	b.ReportMetric(float64(lanes.Claims), "claims")
	b.ReportMetric(float64(len(lanes.Row)), "bars")
}

// benchClient serves store, and returns a function that reads an answer and returns its size.
func benchClient(b *testing.B, store *ledger.Store, now func() time.Time) func(b *testing.B,
	path string) int {
	b.Helper()
	s := serveStore(b, store, now)
	client := &http.Client{Jar: loggedIn(b, s)}
	return func(b *testing.B, path string) int {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.base+path, nil)
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Accept-Encoding", "identity")
		answer, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer answer.Body.Close()
		var body bytes.Buffer
		if _, err := io.Copy(&body, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			b.Fatalf("%s: %s %v\n%.500s", path, answer.Status, err, body.String())
		}
		return body.Len()
	}
}
