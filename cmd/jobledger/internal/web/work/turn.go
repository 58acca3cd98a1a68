package work

import (
	"sync"
	"time"
)

// resendWithin is how long the claims of a client that has gone are kept for it: it may send the request
// again on another connection.
const resendWithin = 10 * time.Second

// turns says which request with the same tokens is the last.
type turns struct {
	mu  sync.Mutex
	all map[string]*turn
}

type turn struct {
	last int // the number of the last request
	open int // requests that have not left
}

// enter takes in a request with tokens, of which the first stands for all. isLast reports whether no other
// with them came later; leave must be called.
func (t *turns) enter(token string) (isLast func() bool, leave func()) {
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
	mine := one.last
	return func() bool {
			t.mu.Lock()
			defer t.mu.Unlock()
			return one.last == mine
		}, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			if one.open--; one.open == 0 {
				delete(t.all, token)
			}
		}
}
