package web

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"jobledger/cmd/jobledger/internal/web/access"
	"jobledger/commands"
	"jobledger/commands/commandstest"
	"jobledger/commands/remote"
	"jobledger/commands/worker"
	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

// cutter is a relay that cuts each connection after a random number of bytes, in one direction or the other.
type cutter struct {
	listener net.Listener
	to       atomic.Value // set before the first connection
	most     int64        // bytes until a cut, at most
	off      atomic.Bool
	cuts     atomic.Int32
}

func newCutter(t *testing.T, most int64) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: listener, most: most}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { c.relay(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return c
}

func (c *cutter) relay(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.to.Load().(string))
	if err != nil {
		return
	}
	defer server.Close()
	asks, answers := c.most*4, c.most*4 // one of the two is cut before that
	if rand.IntN(2) == 0 {
		asks = rand.Int64N(c.most)
	} else {
		answers = rand.Int64N(c.most)
	}
	if c.off.Load() {
		asks, answers = 1<<40, 1<<40
	}
	var both sync.WaitGroup
	pass := func(to, from net.Conn, most int64) {
		if n, _ := io.CopyN(to, from, most); n == most {
			c.cuts.Add(1)
		}
		_ = client.Close()
		_ = server.Close()
	}
	both.Go(func() { pass(server, client, asks) })
	both.Go(func() { pass(client, server, answers) })
	both.Wait()
}

// Where connections are cut at random points, nothing acknowledged is lost, no job runs twice, and no claim
// waits for the end of its lease: the leases are far longer than the test.
func TestCutConnectionsLoseNothing(t *testing.T) {
	t.Parallel()
	c := newCutter(t, 6000)
	s := serve(t, "127.0.0.1:0", c.listener.Addr().String())
	c.to.Store(strings.TrimPrefix(s.base, "http://"))
	token := strings.TrimPrefix(s.create("all", []string{"*"}, access.Enqueue, access.Work), "Bearer ")
	client, err := remote.New(remote.Config{URL: "http://" + c.listener.Addr().String(), Token: token,
		Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	jobs := ledgertest.Size(60, 150, 600)
	acknowledged := map[event.JobID]string{}
	var mu sync.Mutex
	ran := map[event.JobID]int{}
	finished := make(chan struct{}, jobs*2)
	var all sync.WaitGroup
	var workers []*worker.Worker
	for range 3 {
		w := &worker.Worker{Backend: client, Queues: []string{"q"}, Slots: 3, Lease: 10 * time.Minute,
			Handler: worker.HandlerFunc(func(_ context.Context, job projection.Job) ([]byte, error) {
				mu.Lock()
				ran[job.ID]++
				mu.Unlock()
				finished <- struct{}{}
				return job.Payload, nil
			})}
		workers = append(workers, w)
		all.Go(func() {
			if _, err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range jobs {
		payload := fmt.Sprint("payload ", i)
		got, err := client.Enqueue(t.Context(), "", commands.Enqueue{Queue: "q", Payload: []byte(payload)})
		if err != nil {
			t.Fatal(err)
		}
		acknowledged[got[0].ID] = payload
	}
	for range jobs {
		<-finished
	}
	c.off.Store(true)
	for _, w := range workers {
		w.Stop()
	}
	all.Wait()
	if len(ran) != jobs || c.cuts.Load() == 0 {
		t.Errorf("%d of %d jobs ran, with %d cuts", len(ran), jobs, c.cuts.Load())
	}
	err = s.Store.Read(t.Context(), func(tx *ledger.Tx) error {
		for id, payload := range acknowledged {
			j, ok, err := projection.Get(t.Context(), tx, id)
			if err == nil && ok {
				err = projection.LoadBodies(t.Context(), tx, &j)
			}
			if err != nil {
				return err
			}
			if !ok || j.State != event.SucceededState || string(j.Result) != payload || ran[id] != 1 {
				t.Errorf("job %s is there %t, %s, with the result %q, and ran %d times", id, ok, j.State, j.Result,
					ran[id])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d connections were cut", c.cuts.Load())
	commandstest.Verify(t, s.Store)
}
