package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// In these tests, what is refused is soon sent again.
func init() { backoff.Min, firstRest = 100*time.Millisecond, 100*time.Millisecond }

// site is a ledger, a receiver on the loopback interface, and a webhook between them.
type site struct {
	*commandstest.Scenario
	t        *testing.T
	path     string
	endpoint Endpoint
	url      string

	mu     sync.Mutex
	answer func(n int) int // the status for the n-th request, from 1; 0: none at all
	asked  []received
	came   chan struct{} // has room for many
}

type received struct {
	id     string
	body   message
	status int
}

func newSite(t *testing.T, change func(*Endpoint)) *site {
	t.Helper()
	s := &site{Scenario: commandstest.New(t), t: t, path: filepath.Join(t.TempDir(), "webhooks"),
		answer: func(int) int { return http.StatusNoContent }, came: make(chan struct{}, 10_000)}
	s.Store.Now = time.Now
	server := httptest.NewServer(http.HandlerFunc(s.receive))
	t.Cleanup(server.Close)
	s.url = server.URL
	e := Endpoint{Name: "crm", URL: server.URL + "/in", Allow: loopback, Parallel: 1, Timeout: MinTimeout,
		Secrets: []Secret{NewSecret()}}
	change(&e)
	s.add(e)
	return s
}

func (s *site) add(e Endpoint) {
	s.t.Helper()
	s.endpoint = e
	if err := Change(s.path, func(f *File) error { return f.Add(e) }); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) receive(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	s.mu.Lock()
	n := len(s.asked) + 1
	got := received{id: r.Header.Get("Webhook-Id"), status: s.answer(n)}
	if err = errors.Join(err, json.Unmarshal(text, &got.body)); err != nil {
		s.t.Errorf("request %d: %v", n, err)
	}
	s.asked = append(s.asked, got)
	s.mu.Unlock()
	switch got.status {
	case 0:
		<-r.Context().Done() // until the client is tired of it
	case http.StatusFound:
		w.Header().Set("Location", s.url+"/elsewhere")
		w.WriteHeader(got.status)
	default:
		w.WriteHeader(got.status)
	}
	s.came <- struct{}{}
}

// run runs a dispatcher until the function that it returns is called.
func (s *site) run() (stop func()) {
	d := &Dispatcher{Service: s.Service, Path: s.path, Report: s.t.Logf}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	s.t.Cleanup(stop)
	return stop
}

// await waits until the receiver has taken all of the events, and returns the requests.
func (s *site) await(events []event.Event) []received {
	s.t.Helper()
	wanted := make(map[string]bool)
	for _, x := range events {
		id, err := IDOf(x)
		if err != nil {
			s.t.Fatal(err)
		}
		wanted[id] = true
	}
	for {
		s.mu.Lock()
		asked, missing := slices.Clone(s.asked), len(wanted)
		for _, got := range asked {
			if !wanted[got.id] {
				s.t.Fatalf("%s was not asked for: %+v", got.id, got.body)
			}
		}
		for id := range wanted {
			if slices.ContainsFunc(asked, func(r received) bool { return r.id == id && r.status/100 == 2 }) {
				missing--
			}
		}
		s.mu.Unlock()
		if missing == 0 {
			return asked
		}
		select {
		case <-s.came:
		case <-time.After(time.Minute):
			s.t.Fatalf("%d of %d events are missing", missing, len(wanted))
		}
	}
}

// selected are the events that the webhook is to get, as filter says.
func (s *site) selected(filter ledger.Filter) (events []event.Event) {
	s.t.Helper()
	err := s.Store.Read(s.t.Context(), func(tx *ledger.Tx) error {
		events = nil
		for x, err := range tx.Events(s.t.Context(), filter) {
			if err != nil {
				return err
			}
			events = append(events, x)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return events
}

// work does n jobs of the queue; each fails once.
func (s *site) work(queue string, n int) {
	s.t.Helper()
	who := event.Worker{Name: "w", Boot: "01KDY9FY88TH00000000000011"}
	for range n {
		_, err := s.Enqueue(s.t.Context(), "cli:test", commands.Enqueue{Queue: queue,
			Tags: map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}})
		if err != nil {
			s.t.Fatal(err)
		}
		for attempt := range 2 {
			jobs, err := s.Claim(s.t.Context(), commands.ClaimRequest{Queues: []string{queue}, Worker: who})
			if err != nil || len(jobs) != 1 {
				s.t.Fatal(jobs, err)
			}
			if retry := time.Duration(0); attempt == 0 {
				_, err = s.Fail(s.t.Context(), jobs[0], commands.Fail{Code: "smtp_421", RetryIn: &retry})
			} else {
				_, err = s.Complete(s.t.Context(), jobs[0], nil)
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

var ends = ledger.Filter{Kinds: []event.Kind{event.KindFailed, event.KindSucceeded}, Queue: "mail"}

// A webhook gets every event that it asks for, in order, and no other, including those that were recorded
// while no server ran. What it had is not sent again by a server that starts.
func TestWebhookGetsEachEventOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(e *Endpoint) { e.Queues, e.Kinds = []string{"mail"}, []string{"failed", "succeeded"} })
	s.work("mail", 2)
	stop := s.run()
	s.work("other", 1)
	s.work("mail", 3)
	s.await(s.selected(ends))
	stop()
	s.work("mail", 2)
	stop = s.run()
	asked := s.await(s.selected(ends))
	stop()
	events := s.selected(ends)
	if len(asked) != len(events) || len(events) != 14 {
		t.Fatalf("%d requests for %d events", len(asked), len(events))
	}
	for i, x := range events {
		id, _ := IDOf(x)
		m := asked[i].body
		if asked[i].id != id || m.ID != id || PosOf(id) != x.Pos || m.Subject != string(x.Job) ||
			m.Queue != "mail" || m.Traceparent == "" || m.SpecVersion != "1.0" ||
			m.Type != "dev.jobledger.job."+x.Kind().String()+".v1" || m.Time != event.FormatTime(x.At) {
			t.Errorf("event %d: %+v", x.Pos, m)
		}
	}
}

// A receiver that fails, redirects or is slow gets the same events again, with the same ids. Where requests
// are made at the same time, none is lost either.
func TestWebhookGoesOnAfterFailures(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(e *Endpoint) { e.Queues, e.Parallel = []string{"ma*"}, 4 })
	s.answer = func(n int) int {
		return map[int]int{1: http.StatusInternalServerError, 2: http.StatusFound}[n] + 200*min(1, max(0, n-3))
	}
	s.run()
	s.work("mail", 2)
	asked := s.await(s.selected(ledger.Filter{Queue: "mail"}))
	if asked[2].status != 0 {
		t.Errorf("the third request was answered: %+v", asked[2])
	}
	for _, code := range []string{"http_500", "http_302", "timeout"} {
		failed := s.selected(ledger.Filter{Queue: s.endpoint.Queue(), Kinds: []event.Kind{event.KindFailed}})
		if !slices.ContainsFunc(failed, func(x event.Event) bool {
			return x.Body.(*event.Failed).ErrorCode == code
		}) {
			t.Errorf("no attempt has failed with %s", code)
		}
	}
}

// 410 pauses the queue; what was not taken is sent when an operator resumes it.
func TestWebhookGoneIsPaused(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(e *Endpoint) { e.Kinds = []string{"succeeded"} })
	s.answer = func(n int) int { return []int{http.StatusNoContent, http.StatusGone}[min(n%2, 1)] }
	s.run()
	s.work("mail", 1)
	<-s.came
	paused := ledger.Filter{Kinds: []event.Kind{event.KindQueuePaused}}
	for len(s.selected(paused)) == 0 {
		time.Sleep(5 * time.Millisecond) // another goroutine records it after the answer
	}
	b := s.selected(paused)[0].Body.(*event.QueuePaused)
	if b.Queue != "webhook.crm" || !strings.Contains(b.Reason, "410 Gone") || strings.Contains(b.Reason, "/in") {
		t.Errorf("paused: %+v", b)
	}
	if _, err := s.Resume(t.Context(), "cli:test", "webhook.crm", "they are back"); err != nil {
		t.Fatal(err)
	}
	s.await(s.selected(ledger.Filter{Kinds: []event.Kind{event.KindSucceeded}, Queue: "mail"}))
}

// A job that another program enqueues into the queue of deliveries does not make an event known to a receiver
// that does not get it.
func TestWebhookSendsNoForeignJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(e *Endpoint) { e.Kinds = []string{"succeeded"} })
	s.work("mail", 1)
	secret := s.selected(ledger.Filter{Kinds: []event.Kind{event.KindFailed}})[0]
	id, err := IDOf(secret)
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Enqueue(t.Context(), "http:p", commands.Enqueue{Queue: "webhook.crm", Key: id},
		commands.Enqueue{Queue: "webhook.crm", Key: "1-0000000000000000"}, commands.Enqueue{Queue: "webhook.crm"})
	if err != nil {
		t.Fatal(err)
	}
	stop := s.run()
	s.await(s.selected(ledger.Filter{Kinds: []event.Kind{event.KindSucceeded}, Queue: "mail"}))
	stop()
	for _, m := range made {
		if j, err := s.Get(t.Context(), m.ID); err != nil || j.State != event.CancelledState {
			t.Errorf("%s is %s, %v", m.Key, j.State, err)
		}
	}
}

// A webhook goes on where it is to: after the event at which it was made, or after a restore that replaced
// that event.
func TestWebhookStartsAtItsPlace(t *testing.T) {
	s := newSite(t, func(*Endpoint) {})
	s.work("mail", 2)
	start := func(after Place) (pos int64) {
		e := s.endpoint
		e.After = after
		f := &feed{service: s.Service, endpoint: e, report: t.Logf}
		err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
			pos, err = f.start(t.Context(), tx, s.Tail())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return pos
	}
	tail := s.Tail()
	var here Place
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) (err error) {
		here, err = PlaceAt(t.Context(), tx, 5)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		after Place
		want  int64
	}{{Place{}, 0}, {here, 5}, {Place{Pos: 5, ID: "5-0000000000000000"}, tail},
		{Place{Pos: tail + 9, ID: "x"}, tail}, {Place{5, "5-0000000000000000", here.At}, 5},
		{Place{tail + 9, "x", here.At}, 5}} {
		if got := start(tt.after); got != tt.want {
			t.Errorf("after %+v it begins after %d, not %d", tt.after, got, tt.want)
		}
	}
	if err := s.Restored(t.Context(), "cli:test", event.Restored{From: "b.db", Events: tail}); err != nil {
		t.Fatal(err)
	}
	s.work("mail", 1)
	if got := start(Place{Pos: tail + 2, ID: "x"}); got != tail+1 {
		t.Errorf("after a restore it begins after %d, not %d", got, tail+1)
	}
}

// What waits for a receiver that is paused is bounded: the events after that are read when there is room.
func TestWebhookWaitingIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(*Endpoint) {})
	if _, err := s.Pause(t.Context(), "cli:test", "webhook.crm", "they migrate"); err != nil {
		t.Fatal(err)
	}
	jobs := make([]commands.Enqueue, 800)
	for i := range jobs {
		jobs[i] = commands.Enqueue{Queue: "mail"}
	}
	for range 2 {
		if _, err := s.Enqueue(t.Context(), "cli:test", jobs...); err != nil {
			t.Fatal(err)
		}
	}
	const most = 1200
	f := &feed{service: s.Service, endpoint: s.endpoint, report: t.Logf, most: most}
	for more := true; more; {
		var err error
		if more, err = f.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var waiting int
	err := s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		all, err := projection.List(t.Context(), tx, projection.Filter{Queues: []string{"webhook.crm"}})
		waiting = len(all)
		return err
	})
	if err != nil || waiting > most || waiting <= most-pageEvents || f.pos < int64(waiting) {
		t.Errorf("%d wait, up to event %d, %v", waiting, f.pos, err)
	}
}

// If a failover has put other events in the place of some that were delivered, the others are delivered
// too, each once, and what is delivered is in the ledger.
func TestWebhookAfterFailoverThatLostEvents(t *testing.T) {
	t.Parallel()
	dsn := ledgertest.Empty(t)
	var said []string
	endpoint := Endpoint{Name: "crm", Parallel: 1, Timeout: MinTimeout}
	f := &feed{endpoint: endpoint, most: maxWaiting, report: func(format string, args ...any) {
		said = append(said, fmt.Sprintf(format, args...))
	}}
	on := func(store *ledger.Store) { f.service = &commands.Service{Store: store} }
	on(ledgertest.OpenAt(t, dsn))
	enqueue := func(n int) {
		t.Helper()
		for range n {
			if _, err := f.service.Enqueue(t.Context(), "cli:test", commands.Enqueue{Queue: "mail"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	feed := func() {
		t.Helper()
		for more := true; more; {
			var err error
			if more, err = f.step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	enqueue(2)
	feed()
	feed() // up to its own deliveries
	back := ledgertest.Rewind(t, dsn)
	enqueue(3)
	feed()
	feed()
	lost := f.pos
	back()
	on(ledgertest.OpenAt(t, dsn))
	enqueue(int(lost)) // so that the ledger is longer than it was
	feed()
	if len(said) != 1 || !strings.Contains(said[0], "lacks events that were read") {
		t.Errorf("it said %q", said)
	}
	feed()
	var want, got []string
	err := f.service.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for x, err := range tx.Events(t.Context(), ledger.Filter{Queue: "mail"}) {
			if err != nil {
				return err
			}
			id, err := IDOf(x)
			if err != nil {
				return err
			}
			want = append(want, id)
		}
		jobs, err := projection.List(t.Context(), tx, projection.Filter{Queues: []string{endpoint.Queue()}})
		for _, j := range slices.Backward(jobs) {
			got = append(got, j.Key)
		}
		return err
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d deliveries %q, want %q, %v", len(got), got, want, err)
	}
	commandstest.Verify(t, f.service.Store)
}
