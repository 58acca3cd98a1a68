package web

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/remote"
	"jobledger/ledger/event"
)

// A client sends a request again that was answered with 507, as with 503: a disk has no room for it, and will
// have. It loses neither a job nor an outcome.
func TestClientSendsAgainAfterInsufficientStorage(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	behind, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }}
	var asked, refused atomic.Int64
	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1)%3 != 0 {
			refused.Add(1)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusInsufficientStorage)
			_, _ = w.Write([]byte(`{"status":507,"code":"full","exit":75,"detail":"the disk is full"}`))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(full.Close)
	token := s.create("all", []string{"*"}, access.Enqueue, access.Work)
	c, err := remote.New(remote.Config{URL: full.URL, Token: strings.TrimPrefix(token, "Bearer ")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	job := commands.Enqueue{Queue: "render", Payload: []byte("a")}
	if _, err := c.Enqueue(t.Context(), "", job); err != nil {
		t.Fatal(err)
	}
	jobs, err := c.Claim(t.Context(), commands.ClaimRequest{Queues: []string{"render"}, Limit: 1,
		Worker: event.Worker{Name: "w", Boot: "01KDXYZAF8000000000000B00T"}})
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	done, err := c.Apply(t.Context(), "", jobs[0].ID, commands.Succeed{Token: jobs[0].Token})
	if err != nil || done.State != event.SucceededState || refused.Load() < 6 {
		t.Errorf("%+v, %v, after %d refusals", done, err, refused.Load())
	}
	commandstest.Verify(t, s.Store)
}
