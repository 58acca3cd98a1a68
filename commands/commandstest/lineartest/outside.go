package lineartest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Calls are what a client asks of a ledger by another way than a Service.
type Calls struct {
	Enqueue func(context.Context, commands.Enqueue) (commands.Enqueued, error)
	Claim   func(context.Context, commands.ClaimRequest) ([]projection.Job, error)
	Owner   func(context.Context, projection.Job, commands.Command) (projection.Job, error)
	Resent  func() int // how often a call may have been sent again since this was asked last
}

// Outside checks that a history is linearizable in which clients work on a ledger by another way than a
// Service, besides those of a Service. Their calls may be carried out more than once.
type Outside struct {
	Clients int           // of each kind
	Calls   int           // of each client
	Lease   time.Duration // of the clients outside, by the ledger's clock, which is 30 times too fast
	// Begin begins to serve the store, whose clock runs fast, and returns how a client asks, and how that ends.
	Begin func(store *ledger.Store) (client func(name string) Calls, end func())
}

// Check runs the clients and checks the history. For every job that is claimed at the end, some client must
// know the token: no claim was lost. It returns how often there was each answer.
func (o Outside) Check(t *testing.T) (counts map[string]int) {
	t.Helper()
	h := newHistory(t, 10)
	begin, end := o.Begin(h.store)
	service := asIs{&commands.Service{Store: h.store}}
	var out bytes.Buffer
	report := &linearReport{to: &out}
	var all sync.WaitGroup
	var clients []*client
	for i := range 2 * o.Clients {
		name := fmt.Sprint("c", i)
		api := linearAPI(service)
		if i%2 == 0 {
			api = outside{service, begin(name)}
		}
		c := newClient(api, name, h.clock, report, h.jobs, rand.Uint64())
		if i%2 == 0 {
			c.lease = o.Lease
		}
		clients = append(clients, c)
		all.Go(func() {
			if err := c.run(t.Context(), o.Calls); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	end()
	for lost := h.lost(clients); lost != ""; lost = h.lost(clients) {
		if t.Context().Err() != nil {
			t.Fatalf("no client knows that it has claimed job %s", lost)
		}
		time.Sleep(10 * time.Millisecond) // no event says that a claim was given back
	}
	h.sweptOutside(report)
	h.take(0, out.Bytes())
	counts = make(map[string]int)
	h.end(counts)
	return counts
}

// sweptOutside records the sweeps of the server, which no client called: they are calls without an answer, of
// any time.
func (h *history) sweptOutside(report *linearReport) {
	h.t.Helper()
	service := &commands.Service{Store: h.store}
	jobs, err := service.List(h.t.Context(), projection.Filter{})
	if err != nil {
		h.t.Fatal(err)
	}
	numbers := make(map[event.JobID]int)
	for _, j := range jobs {
		numbers[j.ID] = queueNumber(j)
	}
	err = h.store.Read(h.t.Context(), func(tx *ledger.Tx) error {
		for e, err := range tx.Events(h.t.Context(), ledger.Filter{Kinds: []event.Kind{event.KindReclaimed}}) {
			if err != nil {
				return err
			}
			if e.Actor != sweeper {
				report.write(linearRecord{Client: e.Actor, At: h.clock.Mono, Call: &linearCall{Op: "sweep"},
					Jobs: []int{numbers[e.Job]}})
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// lost returns a job whose claim none of the clients knows; "": there is none.
func (h *history) lost(clients []*client) event.JobID {
	h.t.Helper()
	service := &commands.Service{Store: h.store}
	jobs, err := service.List(h.t.Context(), projection.Filter{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, j := range jobs {
		known := !j.State.Held()
		for _, c := range clients {
			for _, tokens := range c.tokens {
				known = known || slices.Contains(tokens, j.Token)
			}
		}
		if !known {
			return j.ID
		}
	}
	return ""
}

// outside asks through Calls, and through a Service what Calls do not offer.
type outside struct {
	asIs
	calls Calls
}

func (o outside) enqueue(ctx context.Context, e commands.Enqueue) (commands.Enqueued, error) {
	return o.calls.Enqueue(ctx, e)
}

func (o outside) claim(ctx context.Context, r commands.ClaimRequest) ([]projection.Job, error) {
	return o.calls.Claim(ctx, r)
}

func (o outside) do(ctx context.Context, j projection.Job, c commands.Command) (projection.Job, error) {
	switch c.(type) {
	case commands.Heartbeat, commands.Succeed, commands.Fail, commands.Release:
		return o.calls.Owner(ctx, j, c)
	}
	return o.asIs.do(ctx, j, c)
}

func (o outside) resent() int { return o.calls.Resent() }
