package remote

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/commands/remote/wire"
)

// waiter has one request at the server that is answered once a job is ready, and wakes those who watch.
type waiter struct {
	mu       sync.Mutex
	running  string // the query of the request; "": there is none
	watchers map[chan struct{}]bool
}

// Watch returns a channel that gets a value when a job may be ready, after Ready said that none was. The
// caller ends it with unsubscribe.
func (c *Client) Watch() (changed <-chan struct{}, unsubscribe func()) {
	w := make(chan struct{}, 1)
	c.waiter.mu.Lock()
	defer c.waiter.mu.Unlock()
	if c.waiter.watchers == nil {
		c.waiter.watchers = make(map[chan struct{}]bool)
	}
	c.waiter.watchers[w] = true
	return w, func() {
		c.waiter.mu.Lock()
		defer c.waiter.mu.Unlock()
		delete(c.waiter.watchers, w)
	}
}

// WatchEnded returns a channel that gets nothing: a heartbeat finds out that a claim has ended.
func (c *Client) WatchEnded() (ended <-chan struct{}, unsubscribe func()) { return nil, func() {} }

// Ready is that of [commands.Service]. If nothing is ready it leaves a waiting request at the server, which
// wakes the watchers; while that request waits, the answer is known, and nothing is sent.
func (c *Client) Ready(ctx context.Context, r commands.ClaimRequest) (ready bool, next time.Time, err error) {
	if err := r.Check(); err != nil {
		return false, next, err
	}
	query := readyQuery(r)
	c.waiter.mu.Lock()
	known := c.waiter.running == query
	c.waiter.mu.Unlock()
	if known {
		return false, next, nil
	}
	answer, err := c.ready(ctx, query, 0)
	if err == nil && !answer.Ready {
		c.waiter.mu.Lock()
		if c.waiter.running == "" && len(c.waiter.watchers) > 0 {
			c.waiter.running = query
			go c.await(query) // #nosec G118 -- it waits for later calls too, until Close
		}
		c.waiter.mu.Unlock()
	}
	return answer.Ready, next, err
}

func readyQuery(r commands.ClaimRequest) string {
	q := url.Values{"queue": r.Queues}
	if r.Version != "" {
		q.Set("version", r.Version)
	}
	if len(r.Capabilities) > 0 {
		q["capability"] = r.Capabilities
	}
	return q.Encode()
}

func (c *Client) ready(ctx context.Context, query string, wait time.Duration) (answer wire.Ready, err error) {
	if wait > 0 {
		query += "&wait=" + strconv.Itoa(int(wait.Seconds()))
	}
	_, err = c.send(ctx, request{method: http.MethodGet, path: "/claims/ready?" + query, wait: wait}, &answer)
	return answer, err
}

// await waits at the server until a job is ready, and wakes those who watch. It ends when there are none.
func (c *Client) await(query string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		began := time.Now()
		answer, err := c.ready(ctx, query, wire.MaxWait)
		c.waiter.mu.Lock()
		if err != nil || answer.Ready || len(c.waiter.watchers) == 0 {
			c.waiter.running = ""
			for w := range c.waiter.watchers {
				select {
				case w <- struct{}{}:
				default:
				}
			}
			c.waiter.mu.Unlock()
			return
		}
		c.waiter.mu.Unlock()
		if time.Since(began) < time.Second { // a server that ends answers early
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}
