package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"jobledger/commands"
	"jobledger/commands/remote/wire"
	"jobledger/ledger"
)

// maxShared is how large a call that shares a request may be, in bytes.
const maxShared = 64 << 10

// lines are the jobs of a call, as lines of JSON.
type lines struct {
	jobs []commands.Enqueue
	text []byte
}

// flight is the request with new jobs that a client has under way. Calls that come meanwhile share the next
// one, as functions share a transaction of the Store.
type flight struct {
	mu      sync.Mutex
	busy    bool
	waiting []*call // for the next request, in order
}

// call is one waiting call of Enqueue.
type call struct {
	lines
	ctx  context.Context
	done chan struct{} // closed when the following are set
	all  []commands.Enqueued
	err  error
}

// enqueue sends the jobs of one call, alone or with those of others.
func (c *Client) enqueue(ctx context.Context, l lines) ([]commands.Enqueued, error) {
	if len(l.text) > maxShared {
		return c.post(ctx, l)
	}
	mine := &call{lines: l, ctx: ctx, done: make(chan struct{})}
	c.flight.mu.Lock()
	if !c.flight.busy {
		c.flight.busy = true
		c.flight.mu.Unlock()
		mine.all, mine.err = c.post(ctx, l)
		c.landed()
		return mine.all, mine.err
	}
	c.flight.waiting = append(c.flight.waiting, mine)
	c.flight.mu.Unlock()
	select {
	case <-mine.done:
		return mine.all, mine.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ledger.ErrUnknown, context.Cause(ctx)) // it may be under way
	}
}

// landed takes in that a request has ended, and sends the next one for those who wait.
func (c *Client) landed() {
	c.flight.mu.Lock()
	defer c.flight.mu.Unlock()
	var group []*call
	jobs, size := 0, 0
	for len(c.flight.waiting) > 0 {
		next := c.flight.waiting[0]
		if next.ctx.Err() != nil { // its caller has gone
			c.flight.waiting = c.flight.waiting[1:]
			continue
		}
		if jobs += len(next.jobs); len(group) > 0 && (jobs > maxJobs || size+len(next.text) > maxBatch) {
			break
		}
		size += len(next.text)
		group, c.flight.waiting = append(group, next), c.flight.waiting[1:]
	}
	if len(group) == 0 {
		c.flight.busy = false
		return
	}
	go func() {
		c.share(group)
		c.landed()
	}()
}

// share sends the jobs of several calls in one request. Such a request is carried out whole or not at all, so
// where it is refused each half is sent alone, until each call has an answer of its own.
func (c *Client) share(group []*call) {
	var l lines
	for _, one := range group {
		l.jobs, l.text = append(l.jobs, one.jobs...), append(l.text, one.text...)
	}
	ctx := context.WithoutCancel(group[0].ctx) // those of the callers end their waiting
	all, err := c.post(ctx, l)
	if p, ok := errors.AsType[*wire.Problem](err); ok && !p.Temporary() && len(group) > 1 {
		c.share(group[:len(group)/2])
		c.share(group[len(group)/2:])
		return
	}
	for _, one := range group {
		if one.err = err; err == nil {
			one.all, all = all[:len(one.jobs):len(one.jobs)], all[len(one.jobs):]
		}
		close(one.done)
	}
}

// post sends jobs in one request.
func (c *Client) post(ctx context.Context, l lines) (all []commands.Enqueued, err error) {
	var answer wire.Items
	if _, err = c.send(ctx, request{method: http.MethodPost, path: "/jobs", kind: "application/x-ndjson",
		body: l.text}, &answer); err != nil {
		return nil, err
	}
	if len(answer.Items) != len(l.jobs) {
		return nil, fmt.Errorf("enqueue: %d answers to %d jobs", len(answer.Items), len(l.jobs))
	}
	for i, item := range answer.Items {
		j, err := item.Projection()
		if err != nil {
			return nil, err
		}
		j.Payload = l.jobs[i].Payload
		all = append(all, commands.Enqueued{Job: j, Replaced: item.Replaced, Left: item.Left,
			Existing: item.Existing})
	}
	return all, nil
}
