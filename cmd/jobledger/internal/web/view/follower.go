package view

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/cli"
	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Limits of the follower. What it keeps does not grow with the ledger.
const (
	MaxStreams = 256
	KeptEvents = 4096
	keptBytes  = 8 << 20
	PageEvents = 500 // events that are read at a time
	followPoll = 250 * time.Millisecond
)

// Follower reads what is recorded once for all streams, and keeps the newest events. A stream that needs
// older ones, because its client is slow, reads them from the ledger, so there is no queue for each client.
// While there is no stream, it does nothing.
type Follower struct {
	mu      sync.Mutex
	events  []Sent // the newest, without a gap, the oldest first
	bytes   int    // of their lines
	pos     int64  // of the last event that was read
	more    chan struct{}
	joined  chan struct{} // has room for one
	streams int
}

// Sent is an event as streams send it.
type Sent struct {
	event.Event
	Line []byte // its public form
}

// newSent makes e ready to be Sent.
func newSent(e event.Event) (Sent, error) {
	line, err := cli.JSONLine(e)
	return Sent{e, line}, err
}

// ID names the event for Last-Event-ID: its position, and a digest that differs where the ledger was replaced
// by one with another history.
func (e Sent) ID() string {
	digest := sha256.Sum256(e.Line)
	return strconv.FormatInt(e.Pos, 10) + "." + hex.EncodeToString(digest[:4])
}

func NewFollower() *Follower {
	return &Follower{more: make(chan struct{}), joined: make(chan struct{}, 1)}
}

// Join adds a stream, which has everything up to tail; ok is false where there are too many.
func (f *Follower) Join(tail int64) (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams >= MaxStreams {
		return false
	}
	if f.streams++; f.streams == 1 {
		f.pos, f.events, f.bytes = tail, nil, 0
	}
	select {
	case f.joined <- struct{}{}:
	default:
	}
	return true
}

// Leave removes a stream.
func (f *Follower) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams--
}

// Count is how many streams there are.
func (f *Follower) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams
}

// Run reads events while there are streams, until ctx ends.
func (f *Follower) Run(ctx context.Context, store *ledger.Store, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.joined:
		}
		f.follow(ctx, store, report)
	}
}

// follow reads events until there are no streams, or ctx ends.
func (f *Follower) follow(ctx context.Context, store *ledger.Store, report func(error)) {
	woken, stop := store.Watch()
	defer stop()
	ticker := time.NewTicker(followPoll)
	defer ticker.Stop()
	failed := false
	for f.Count() > 0 {
		n, err := f.read(ctx, store)
		if err != nil && ctx.Err() == nil && !failed {
			report(err)
		}
		failed = err != nil
		if n == PageEvents {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-woken:
		case <-ticker.C:
		}
	}
}

// read reads the next events, at most PageEvents, and wakes the streams.
func (f *Follower) read(ctx context.Context, store *ledger.Store) (n int, err error) {
	f.mu.Lock()
	after := f.pos
	f.mu.Unlock()
	page, err := EventsOf(ctx, store, ledger.Filter{After: after, Limit: PageEvents})
	if err != nil || len(page) == 0 {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pos != after { // all streams left, and another one came
		return 0, nil
	}
	f.add(page)
	close(f.more)
	f.more = make(chan struct{})
	return len(page), nil
}

// add appends page, and removes the oldest beyond the limits.
func (f *Follower) add(page []Sent) {
	for _, e := range page {
		f.bytes += len(e.Line)
	}
	f.events, f.pos = append(f.events, page...), page[len(page)-1].Pos
	drop := 0
	for len(f.events)-drop > KeptEvents || f.bytes > keptBytes && drop < len(f.events) {
		f.bytes -= len(f.events[drop].Line)
		drop++
	}
	f.events = slices.Delete(f.events, 0, drop)
}

// After returns the kept events after pos, at most PageEvents; held is false where the first of them is not
// kept any more. more is closed when there are others after last.
func (f *Follower) After(pos int64) (events []Sent, held bool, last int64, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if pos >= f.pos {
		return nil, true, max(pos, f.pos), f.more
	}
	first := f.pos - int64(len(f.events)) + 1
	if pos+1 < first {
		return nil, false, f.pos, f.more
	}
	kept := f.events[pos+1-first:]
	return slices.Clone(kept[:min(len(kept), PageEvents)]), true, f.pos, f.more
}

// EventsOf reads the events that filter selects.
func EventsOf(ctx context.Context, store *ledger.Store, filter ledger.Filter) (page []Sent, err error) {
	err = store.Read(ctx, func(tx *ledger.Tx) error {
		page = nil
		for e, err := range tx.Events(ctx, filter) {
			if err != nil {
				return err
			}
			one, err := newSent(e)
			if err != nil {
				return err
			}
			page = append(page, one)
		}
		return nil
	})
	return page, err
}
