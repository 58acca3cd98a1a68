package work

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"jobledger/commands"
	"jobledger/ledger"
	"jobledger/projection/claims"
)

// lookAgain is how often the hub looks although nothing woke it, in case a notification was lost.
const lookAgain = 5 * time.Second

// hub wakes requests that wait for a job. Those that ask for the same kind of jobs are a group; the group is
// looked for once, and one of its requests is woken at a time: once that has claimed, the hub looks for the
// next.
type hub struct {
	service *commands.Service

	mu      sync.Mutex
	groups  map[string]*group
	running bool
	joined  chan struct{} // see again; has room for one
}

// group are the requests that wait for the same kind of jobs, the one that came first in front.
type group struct {
	want    claims.Want
	waiters []chan struct{}
}

// join adds a request that waits for what r asks for. woken gets a value when a job may be ready; leave
// must be called.
func (h *hub) join(r commands.ClaimRequest) (woken <-chan struct{}, leave func()) {
	want := claims.Want{Queues: r.Queues, Version: r.Version, Capabilities: r.Capabilities}
	text, _ := json.Marshal(want) // of texts only
	key, w := string(text), make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.groups == nil {
		h.groups, h.joined = make(map[string]*group), make(chan struct{}, 1)
	}
	g := h.groups[key]
	if g == nil {
		g = &group{want: want}
		h.groups[key] = g
	}
	g.waiters = append(g.waiters, w)
	if !h.running {
		h.running = true
		go h.run()
	} else {
		h.again()
	}
	return w, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, one := range g.waiters {
			if one == w {
				g.waiters = append(g.waiters[:i], g.waiters[i+1:]...)
				break
			}
		}
		if len(g.waiters) == 0 && h.groups[key] == g {
			delete(h.groups, key)
		}
	}
}

// again makes the hub look again: a group is new, or a job was claimed, and the next one may be ready too.
func (h *hub) again() {
	select {
	case h.joined <- struct{}{}:
	default: // even if there is no hub, whose channel is nil
	}
}

// claimed takes in that a request has claimed jobs.
func (h *hub) claimed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running {
		h.again()
	}
}

// run looks until nothing waits for a while.
func (h *hub) run() {
	changed, unsubscribe := h.service.Store.Watch()
	defer unsubscribe()
	for {
		next := h.look()
		h.mu.Lock()
		if len(h.groups) == 0 {
			h.running = false
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		timer := time.NewTimer(next)
		select {
		case <-changed:
		case <-timer.C:
		case <-h.joined:
		}
		timer.Stop()
	}
}

// look wakes one request of each group for which a job is ready, and returns when to look again.
func (h *hub) look() time.Duration {
	h.mu.Lock()
	all := make([]*group, 0, len(h.groups))
	for _, g := range h.groups {
		all = append(all, g)
	}
	h.mu.Unlock()
	next := lookAgain
	ctx, cancel := context.WithTimeout(context.Background(), lookAgain)
	defer cancel()
	err := h.service.Store.Read(ctx, func(tx *ledger.Tx) error {
		for _, g := range all {
			due, err := claims.NextRunAt(ctx, tx, g.want)
			if err != nil {
				return err
			}
			switch {
			case due.IsZero():
			case due.After(tx.Now()):
				next = min(next, due.Sub(tx.Now()))
			default:
				h.wake(g)
				next = min(next, time.Second) // the one that was woken may have gone
			}
		}
		return nil
	})
	if err != nil { // the requests see it when they claim
		for _, g := range all {
			h.wake(g)
		}
		next = time.Second
	}
	return max(next, time.Millisecond)
}

// wake wakes the request of g that has waited for longest, and puts it behind the others.
func (h *hub) wake(g *group) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(g.waiters) == 0 {
		return
	}
	w := g.waiters[0]
	g.waiters = append(g.waiters[1:len(g.waiters):len(g.waiters)], w)
	select {
	case w <- struct{}{}:
	default:
	}
}
