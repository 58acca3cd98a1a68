package ledger

import (
	"context"
	"sync"

	"jobledger/ledger/internal/engine"
)

// Notifications. A commit that made a job claimable is announced: to this process through channels, to others
// through the engine. Only speed depends on it.

// AnnounceEnded declares that this transaction ends the claim of another process; those who watch with
// WatchEnded are woken once it is committed.
func (tx *Tx) AnnounceEnded() { tx.store.announces |= engine.Ended }

// Announce declares that this transaction makes a job claimable, now or later; watchers are woken once it is
// committed.
func (tx *Tx) Announce() { tx.store.announces |= engine.Claimable }

// announce wakes the watchers of this process and of others, after the commit.
func (s *Store) announce() {
	s.watchers.wake(s.announces)
	if !s.Exclusive {
		s.engine.Notify(s.announces)
	}
}

// announcedToOthers returns the topics whose notification may be sent with the commit.
func (s *Store) announcedToOthers() engine.Topic {
	if s.Exclusive || s.watchers.any() {
		return 0
	}
	return s.announces
}

// watchers are the channels of this process.
type watchers struct {
	mu    sync.Mutex
	chans map[chan struct{}]engine.Topic
	quit  context.CancelFunc // of the goroutine that listens to other processes; nil: there is none
	done  sync.WaitGroup     // of all such goroutines

	listening sync.Mutex // held by the one that listens, since the one before may not have ended yet
}

// Watch returns a channel that receives after a commit, of this process or another, that may have made a job
// claimable, and when the Store is closed. It has room for one, so a busy receiver misses nothing but the
// count. Wake-ups can be spurious or late; also poll. stop ends the subscription.
func (s *Store) Watch() (woken <-chan struct{}, stop func()) { return s.watch(engine.Claimable) }

// WatchEnded is Watch for commits that may have ended a claim of this process: a cancel or a reclaim.
func (s *Store) WatchEnded() (woken <-chan struct{}, stop func()) { return s.watch(engine.Ended) }

func (s *Store) watch(topic engine.Topic) (woken <-chan struct{}, stop func()) {
	w := &s.watchers
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chans == nil {
		w.chans = make(map[chan struct{}]engine.Topic)
	}
	w.chans[c] = topic
	if w.quit == nil && !s.Exclusive && s.engine != nil && !s.closed.Load() {
		ctx, cancel := context.WithCancel(context.Background())
		w.quit = cancel
		w.done.Go(func() {
			w.listening.Lock()
			defer w.listening.Unlock()
			s.engine.Listen(ctx, w.wake)
		})
	}
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.chans, c); len(w.chans) == 0 {
			w.stopListening()
		}
	}
}

// wake wakes the watchers of these topics in this process.
func (w *watchers) wake(topics engine.Topic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, topic := range w.chans {
		if topic&topics == 0 {
			continue
		}
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// any reports whether there are watchers.
func (w *watchers) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.chans) > 0
}

// stopListening stops the listening to other processes.
func (w *watchers) stopListening() {
	if w.quit != nil {
		w.quit()
		w.quit = nil
	}
}

// close stops the listening and wakes the watchers, so that they see that the Store is closed.
func (w *watchers) close() {
	w.mu.Lock()
	w.stopListening()
	w.mu.Unlock()
	w.done.Wait()
	w.wake(engine.AnyTopic)
}
