package web

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
	maxStreams = 256
	keptEvents = 4096
	keptBytes  = 8 << 20
	followPage = 500 // events that are read at a time
	followPoll = 250 * time.Millisecond
)

// follower reads what is recorded once for all streams, and keeps the newest events. A stream that needs
// older ones, because its client is slow, reads them from the ledger, so there is no queue for each client.
// While there is no stream, it does nothing.
type follower struct {
	mu      sync.Mutex
	events  []sent // the newest, without a gap, the oldest first
	bytes   int    // of their lines
	pos     int64  // of the last event that was read
	more    chan struct{}
	joined  chan struct{} // has room for one
	streams int
}

// sent is an event as streams send it.
type sent struct {
	event.Event
	line []byte // its public form
}

// newSent makes e ready to be sent.
func newSent(e event.Event) (sent, error) {
	line, err := cli.JSONLine(e)
	return sent{e, line}, err
}

// id names the event for Last-Event-ID: its position, and a digest that differs where the ledger was replaced
// by one with another history.
func (e sent) id() string {
	digest := sha256.Sum256(e.line)
	return strconv.FormatInt(e.Pos, 10) + "." + hex.EncodeToString(digest[:4])
}

func newFollower() *follower {
	return &follower{more: make(chan struct{}), joined: make(chan struct{}, 1)}
}

// join adds a stream, which has everything up to tail; ok is false where there are too many.
func (f *follower) join(tail int64) (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams >= maxStreams {
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

// leave removes a stream.
func (f *follower) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams--
}

// count is how many streams there are.
func (f *follower) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams
}

// run reads events while there are streams, until ctx ends.
func (f *follower) run(ctx context.Context, store *ledger.Store, report func(error)) {
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
func (f *follower) follow(ctx context.Context, store *ledger.Store, report func(error)) {
	woken, stop := store.Watch()
	defer stop()
	ticker := time.NewTicker(followPoll)
	defer ticker.Stop()
	failed := false
	for f.count() > 0 {
		n, err := f.read(ctx, store)
		if err != nil && ctx.Err() == nil && !failed {
			report(err)
		}
		failed = err != nil
		if n == followPage {
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

// read reads the next events, at most followPage, and wakes the streams.
func (f *follower) read(ctx context.Context, store *ledger.Store) (n int, err error) {
	f.mu.Lock()
	after := f.pos
	f.mu.Unlock()
	page, err := eventsOf(ctx, store, ledger.Filter{After: after, Limit: followPage})
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
func (f *follower) add(page []sent) {
	for _, e := range page {
		f.bytes += len(e.line)
	}
	f.events, f.pos = append(f.events, page...), page[len(page)-1].Pos
	drop := 0
	for len(f.events)-drop > keptEvents || f.bytes > keptBytes && drop < len(f.events) {
		f.bytes -= len(f.events[drop].line)
		drop++
	}
	f.events = slices.Delete(f.events, 0, drop)
}

// after returns the kept events after pos, at most followPage; held is false where the first of them is not
// kept any more. more is closed when there are others after last.
func (f *follower) after(pos int64) (events []sent, held bool, last int64, more <-chan struct{}) {
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
	return slices.Clone(kept[:min(len(kept), followPage)]), true, f.pos, f.more
}

// eventsOf reads the events that filter selects.
func eventsOf(ctx context.Context, store *ledger.Store, filter ledger.Filter) (page []sent, err error) {
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
