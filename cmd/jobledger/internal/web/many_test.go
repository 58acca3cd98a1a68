package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/cmd/jobledger/internal/web/api"
	"jobledger/cmd/jobledger/internal/web/work"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/worker"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// Claims that wait, and streams, are there all at once, with little memory; a job wakes one of the claims.
// More claims of one token are refused.
func TestManyWaitAndWatchAtOnce(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	polls, streams := ledgertest.Size(100, 200, 500), ledgertest.Size(20, 50, 128)
	s.client.Transport = &http.Transport{MaxIdleConnsPerHost: -1, DisableKeepAlives: true}
	ctx, cancel := context.WithCancel(t.Context())
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	ask := func(path, token string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, "GET", s.base+api.Root+path, nil)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", token)
		return s.client.Do(r)
	}
	var reader string
	memory := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	before := memory()
	woken := make(chan string, polls)
	const each = 60 // of one token
	var token string
	for i := range polls {
		if i%each == 0 {
			token = s.create(fmt.Sprint("worker-", i), []string{"*"}, access.Work)
		}
		mine := token
		open.Go(func() {
			answer, err := ask(fmt.Sprintf("/claims/ready?queue=q&wait=60&capability=c%d", i%3), mine)
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			defer answer.Body.Close()
			text, _ := io.ReadAll(answer.Body)
			if ctx.Err() == nil {
				woken <- string(text)
			}
		})
	}
	for i := range streams {
		if i%each == 0 {
			reader = s.create(fmt.Sprint("reader-", i), []string{"*"}, access.Read)
		}
		answer, err := ask("/events/stream", reader)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("stream %d: %v %v", i, answer, err)
		}
		open.Go(func() {
			defer answer.Body.Close()
			_, _ = io.Copy(io.Discard, answer.Body)
		})
	}
	for s.work.Waiting() < polls {
		select {
		case text := <-woken:
			t.Fatalf("one did not wait: %s", text)
		case <-time.After(5 * time.Millisecond): // no event says that a request waits
		}
		if t.Failed() {
			return
		}
	}
	used := memory() - before
	t.Logf("%d claims that wait and %d streams take %d KiB in client and server", polls, streams, used>>10)
	if limit := int64(polls+streams) * 160 << 10; used > limit {
		t.Errorf("they take %d KiB, more than %d", used>>10, limit>>10)
	}
	if _, err := s.service().Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	if text := <-woken; !strings.Contains(text, `"ready":true`) {
		t.Errorf("the one that was woken got %s", text)
	}
	cancel()
	open.Wait()
	for s.work.Waiting() > 0 {
		time.Sleep(5 * time.Millisecond) // no event says that the server has noticed
	}
	commandstest.Verify(t, s.Store)
}

// service works on the ledger of the server.
func (s *served) service() *commands.Service { return &commands.Service{Store: s.Store} }

// waiting has n claims wait, the i-th of queue(i), and returns once the server counts them. A token is for as
// many of them as each says; the last token is returned. end ends them.
func (s *served) waiting(n, each int, queue func(i int) string) (token string, end func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	var open sync.WaitGroup
	for i := range n {
		if i%each == 0 {
			token = s.create(fmt.Sprint("w-", i), []string{"*"}, access.Work)
		}
		r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s%s/claims/ready?queue=%s&wait=60", s.base,
			api.Root, queue(i)), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set("Authorization", token)
		open.Go(func() {
			if answer, err := s.client.Do(r); err == nil {
				_ = answer.Body.Close()
			}
		})
	}
	for s.work.Waiting() < n {
		time.Sleep(time.Millisecond) // no event says that a request waits
	}
	return token, func() { cancel(); open.Wait() }
}

func queueQ(int) string { return "q" }

// A token may have only so many claims that wait.
func TestWaitingClaimsOfOneTokenAreLimited(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	token, end := s.waiting(64, 64, queueQ)
	defer end()
	status, text := s.post("GET", "/claims/ready?queue=q&wait=60", "", "", "Authorization", token)
	if status != http.StatusTooManyRequests {
		t.Errorf("one more: %d %s", status, text)
	}
	other := s.create("other", []string{"*"}, access.Work)
	if status, text := s.post("GET", "/claims/ready?queue=q", "", "", "Authorization", other); status != 200 {
		t.Errorf("one of another token that does not wait: %d %s", status, text)
	}
}

// There may be only so many claims that wait, of all tokens; one more is to be sent again.
func TestWaitingClaimsAreLimited(t *testing.T) {
	n := ledgertest.Size(8, 16, work.MaxWaiting)
	s := serveWith(t, "127.0.0.1:0", func(c *Config) { c.Waiting = n })
	_, end := s.waiting(n, work.MaxWaitingGrant/2, queueQ)
	defer end()
	other := s.create("other", []string{"*"}, access.Work)
	answer, text := s.do("GET", api.Root+"/claims/ready?queue=q&wait=60", nil, "Authorization", other)
	if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" ||
		!strings.Contains(text, `"code":"rate"`) {
		t.Errorf("one more: %s %s", answer.Status, text)
	}
	claim := `{"queues":["q"],"worker":"w","boot":"b","tokens":["01KDXYZAF8000000000000000A"],"wait":`
	for wait, want := range map[string]int{"60}": http.StatusTooManyRequests, "0}": http.StatusNoContent} {
		if status, text := s.post("POST", "/claims", jsonKind, claim+wait, "Authorization", other); status != want {
			t.Errorf("a claim with the wait %s: %d %s", wait, status, text)
		}
	}
	end()
	for s.work.Waiting() > 0 {
		time.Sleep(time.Millisecond) // no event says that the server has noticed
	}
	claim += "0.01}"
	if status, text := s.post("POST", "/claims", jsonKind, claim, "Authorization", other); status != 204 {
		t.Errorf("when the others have gone: %d %s", status, text)
	}
	commandstest.Verify(t, s.Store)
}

// BenchmarkIdleLongPolls measures what 1,000 claims that wait, and 16 workers without a job, cost: the
// processor time of server and clients, as a share of one core. Each iteration is a second in which nothing
// happens.
//
//	go test -run - -bench IdleLongPolls -benchtime 30x ./cmd/jobledger/internal/web
func BenchmarkIdleLongPolls(b *testing.B) {
	s := serve(b, "127.0.0.1:0")
	s.client.Transport = &http.Transport{DisableKeepAlives: true}
	const polls, each, workers = 1000, 60, 16
	_, end := s.waiting(polls, each, func(i int) string { return fmt.Sprint("q", i%10) })
	defer end()
	ctx, cancel := context.WithCancel(b.Context())
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	c := s.remote("workers", access.Work)
	for range workers {
		w := &worker.Worker{Backend: c, Queues: []string{"q"}, Slots: 4, Handler: worker.HandlerFunc(
			func(context.Context, projection.Job) ([]byte, error) { return nil, nil })}
		open.Go(func() {
			if _, err := w.Run(ctx); err != nil {
				b.Error(err)
			}
		})
	}
	for s.work.Waiting() < polls+1 { // the workers of one client share a request
		time.Sleep(5 * time.Millisecond) // no event says that a request waits
	}
	b.ResetTimer()
	used := processorTime()
	time.Sleep(time.Duration(b.N) * time.Second) // in which nothing happens
	b.ReportMetric(100*(processorTime()-used).Seconds()/float64(b.N), "percent-of-a-core")
}
