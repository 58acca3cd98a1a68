package door

import (
	"net/http"
	"sync"
)

// Shares bounds how much of something each token holds at the same time. The zero value holds nothing; Most
// is set before it is used.
type Shares struct {
	Most int

	mu sync.Mutex
	of map[string]int // by the id of the token
}

// Take takes one for the caller of r; give gives it back. An error says that a token holds its most.
func (s *Shares) Take(r *http.Request, what string) (give func(), err error) {
	id := CallerOf(r.Context()).ID
	if id == "" { // the owner
		return func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[id] >= s.Most {
		return nil, Refusal(http.StatusTooManyRequests, "rate", "too many "+what+" with this token")
	}
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.of[id]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.of[id]--; s.of[id] == 0 {
			delete(s.of, id)
		}
	}, nil
}
