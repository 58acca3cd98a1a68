package work

import (
	"sync"
	"time"
)

// resendWithin is how long the claims of a client that has gone are kept for it: it may send the request
// again on another connection.
const resendWithin = 10 * time.Second

// turns says which request with the same tokens is the last, and whether the client has got its claims.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

type turn struct {
	last  int // the number of the last request
	open  int // requests that have not left
	given int // the number of the last request that was answered with claims; 0: none
}

// entry is one request with tokens.
type entry struct {
	*turn
	of    *turns
	token string
	mine  int
}

// enter takes in a request with tokens, of which the first stands for all. leave must be called.
func (t *turns) enter(token string) entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = make(map[string]*turn)
	}
	one := t.all[token]
	if one == nil {
		one = new(turn)
		t.all[token] = one
	}
	one.last++
	one.open++
	return entry{one, t, token, one.last}
}

// isLast reports whether no other request with the tokens came later.
func (e entry) isLast() bool {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	return e.last == e.mine
}

// gave takes in that the request was answered with claims.
func (e entry) gave() {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	e.given = max(e.given, e.mine)
}

// laterGave reports whether a later request was answered with claims. A request that was answered before
// these claims were made has none.
func (e entry) laterGave() bool {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	return e.given > e.mine
}

func (e entry) leave() {
	e.of.mu.Lock()
	defer e.of.mu.Unlock()
	if e.open--; e.open == 0 {
		delete(e.of.all, e.token)
	}
}
