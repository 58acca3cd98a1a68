package engine

import (
	"context"
	"sync"
)

// Watchers are the channels of this process.
type Watchers struct {
	mu    sync.Mutex
	chans map[chan struct{}]Topic
	quit  context.CancelFunc // of the goroutine that listens to other processes; nil: there is none
	done  sync.WaitGroup     // of all such goroutines

	inbox inboxFlag

	listening sync.Mutex // held by the one that listens, since the one before may not have ended yet
}

// Watch returns a channel that receives after a commit of the topic, in this process, or in another one where
// listen hears of it; nil: of this process alone. stop ends the subscription.
func (w *Watchers) Watch(topic Topic, listen func(context.Context, func(Topic))) (woken <-chan struct{},
	stop func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chans == nil {
		w.chans = make(map[chan struct{}]Topic)
	}
	w.chans[c] = topic
	if w.quit == nil && listen != nil {
		ctx, cancel := context.WithCancel(context.Background())
		w.quit = cancel
		w.done.Go(func() {
			w.listening.Lock()
			defer w.listening.Unlock()
			listen(ctx, w.Wake)
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

// Wake wakes the watchers of these topics in this process.
func (w *Watchers) Wake(topics Topic) {
	w.inbox.note(topics)
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

// Any reports whether there are watchers.
func (w *Watchers) Any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.chans) > 0
}

// stopListening stops the listening to other processes.
func (w *Watchers) stopListening() {
	if w.quit != nil {
		w.quit()
		w.quit = nil
	}
}

// Close stops the listening and wakes the watchers, so that they see that the Store is closed.
func (w *Watchers) Close() {
	w.mu.Lock()
	w.stopListening()
	w.mu.Unlock()
	w.done.Wait()
	w.Wake(AnyTopic)
}
