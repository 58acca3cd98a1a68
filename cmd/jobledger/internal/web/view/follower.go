package view

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/await"
	"jobledger/cmd/jobledger/internal/words"
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
	Clock func() time.Time // for Lag; set before the first stream

	mu      sync.Mutex
	events  []Sent        // the newest, without a gap, the oldest first
	bytes   int           // of their lines
	pos     int64         // of the last event that was read
	end     await.SeenEnd // of what was read
	resets  int           // how often the ledger lacked what was read
	more    chan struct{}
	joined  chan struct{} // has room for one
	streams int
	whole   time.Time // when it last knew that it had read everything
}

// Sent is an event as streams send it.
type Sent struct {
	event.Event
	Line []byte // its public form
}

// newSent makes e ready to be Sent.
func newSent(e event.Event) (Sent, error) {
	line, err := words.JSONLine(e)
	return Sent{e, line}, err
}

// ID names the event for Last-Event-ID: its position, and a digest that differs where the ledger was replaced
// by one with another history.
func (e Sent) ID() string {
	digest := sha256.Sum256(e.Line)
	return strconv.FormatInt(e.Pos, 10) + "." + hex.EncodeToString(digest[:4])
}

// NewFollower returns a follower that does not run yet.
func NewFollower() *Follower {
	return &Follower{Clock: time.Now, more: make(chan struct{}), joined: make(chan struct{}, 1)}
}

// Join adds a stream, which has seen end; ok is false where there are too many.
func (f *Follower) Join(end await.SeenEnd) (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams >= MaxStreams {
		return false
	}
	if f.streams++; f.streams == 1 {
		f.pos, f.end, f.events, f.bytes = end.Pos, end, nil, 0
		f.whole = f.Clock()
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

// Resets returns how often the ledger was found to lack events that were read, as after a failover that lost
// some, and the position of the last event that was read.
func (f *Follower) Resets() (n int, pos int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resets, f.pos
}

// Lag is for how long streams have not had all up to tail, where the ledger ends: since the follower last
// knew that it had read everything. It is 0 where they have it, or there is none.
func (f *Follower) Lag(tail int64) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams == 0 || tail <= f.pos {
		return 0
	}
	return max(0, f.Clock().Sub(f.whole))
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
	end := f.end
	f.mu.Unlock()
	var page []Sent
	var next await.SeenEnd
	var holds bool
	err = store.Read(ctx, func(tx *ledger.Tx) (err error) {
		page, holds, next, err = readAfter(ctx, tx, end)
		return err
	})
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end == end && len(page) < PageEvents {
		f.whole = f.Clock()
	}
	if holds && len(page) == 0 {
		return 0, nil
	}
	if f.end != end { // all streams left, and another one came
		return 0, nil
	}
	if !holds {
		f.pos, f.events, f.bytes = next.Pos, nil, 0
		f.resets++
	}
	f.add(page)
	f.end = next
	close(f.more)
	f.more = make(chan struct{})
	return len(page), nil
}

// readAfter reads the events after end, at most PageEvents, and the event of end with them: if that is
// another event now, or the ledger ends before it, holds is false, and next is the end of the ledger.
func readAfter(ctx context.Context, tx *ledger.Tx, end await.SeenEnd) (page []Sent, holds bool,
	next await.SeenEnd, err error) {
	page, err = eventsIn(ctx, tx, ledger.Filter{After: max(end.Pos-1, 0), Limit: PageEvents + 1})
	if err != nil {
		return nil, false, end, err
	}
	holds = end.Pos == 0
	if len(page) > 0 && page[0].Pos == end.Pos {
		holds = end.Last == nil || await.IsSame(page[0].Event, *end.Last)
		page = page[1:]
	} else if !holds { // it was archived and removed, or the ledger is shorter
		tail, err := tx.Tail(ctx)
		if err != nil {
			return nil, false, end, err
		}
		holds = tail >= end.Pos
	}
	if !holds {
		tail, err := tx.Tail(ctx)
		if err == nil {
			next = await.SeenEnd{Pos: tail}
			err = next.Move(ctx, tx, tail)
		}
		return nil, false, next, err
	}
	page = page[:min(len(page), PageEvents)]
	if next = end; len(page) > 0 {
		last := &page[len(page)-1]
		next = await.SeenEnd{Pos: last.Pos, Last: &last.Event}
	}
	return page, true, next, nil
}

// add appends page, and removes the oldest beyond the limits.
func (f *Follower) add(page []Sent) {
	for _, e := range page {
		f.bytes += len(e.Line)
	}
	if f.events = append(f.events, page...); len(page) > 0 {
		f.pos = page[len(page)-1].Pos
	}
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
	return ledger.Read(ctx, store, func(tx *ledger.Tx) ([]Sent, error) { return eventsIn(ctx, tx, filter) })
}

func eventsIn(ctx context.Context, tx *ledger.Tx, filter ledger.Filter) (page []Sent, err error) {
	for e, err := range tx.Events(ctx, filter) {
		if err != nil {
			return nil, err
		}
		one, err := newSent(e)
		if err != nil {
			return nil, err
		}
		page = append(page, one)
	}
	return page, nil
}
