package door

import (
	"context"
	"net/http"
	"sync/atomic"
)

// drain is how a server ends: requests under way are answered, and new ones are refused.
type drain struct {
	active  atomic.Int64 // requests under way
	ending  atomic.Bool
	closing chan struct{} // closed when the server begins to end
	idle    chan struct{} // has a value when the last request has ended, while the server ends
}

// errDraining means that the server is ending.
var errDraining = Refusal(http.StatusServiceUnavailable, "draining", "the server is ending")

// begin counts a request. Call it before reading ending, so that [Door.Drain] misses no request.
func (d *drain) begin() { d.active.Add(1) }

func (d *drain) end() {
	if d.active.Add(-1) == 0 && d.ending.Load() {
		select {
		case d.idle <- struct{}{}:
		default:
		}
	}
}

// Close says that the server ends: [Door.Closing] is closed, readyz answers 503, and so do all requests that
// come over a connection from then on.
func (d *Door) Close() {
	d.drain.ending.Store(true)
	close(d.drain.closing)
}

// Closing is closed when the server begins to end.
func (d *Door) Closing() <-chan struct{} { return d.drain.closing }

// Drain waits, after Close, until no request is under way or ctx ends.
func (d *Door) Drain(ctx context.Context) {
	for d.drain.active.Load() > 0 {
		select {
		case <-d.drain.idle:
		case <-ctx.Done():
			return
		}
	}
}

// turnsAway reports whether r comes too late. The user who runs this program has said what it is to end with.
func (d *Door) turnsAway(r *http.Request) bool {
	return d.drain.ending.Load() && !probes[r.URL.Path] && r.Context().Value(ownKey{}) == nil
}
