package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"jobledger/ledger/internal/engine"
)

// idleReader is how long a connection to a server is kept for the next read.
const idleReader = 10 * time.Second

// readers are the connections for reading. The one that was used last is used next, so that those which are
// not needed stay idle, and are closed where they are dear.
type readers struct {
	slots chan struct{} // holds one element for each read that goes on

	mu      sync.Mutex
	idle    []idle // the one that was used last at the end
	closing bool   // a goroutine will close those that have been idle for long
}

type idle struct {
	*session
	since time.Time
}

// take returns an idle connection; nil if there is none.
func (p *readers) take() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	r := p.idle[last].session
	p.idle[last] = idle{}
	p.idle = p.idle[:last]
	return r
}

// put gives one back, unless it is nil, and ends the read.
func (p *readers) put(r *session) {
	if r != nil {
		p.mu.Lock()
		p.idle = append(p.idle, idle{r, time.Now()})
		if r.Pipelined && !p.closing { // to a server
			p.closing = true
			time.AfterFunc(idleReader, p.closeIdle)
		}
		p.mu.Unlock()
	}
	<-p.slots
}

// closeIdle closes what has been idle for long, and comes back for the others.
func (p *readers) closeIdle() {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].since) >= idleReader {
		n++
	}
	old := append([]idle(nil), p.idle[:n]...)
	p.idle = append([]idle(nil), p.idle[n:]...)
	if p.closing = len(p.idle) > 0; p.closing {
		time.AfterFunc(idleReader-time.Since(p.idle[0].since), p.closeIdle)
	}
	p.mu.Unlock()
	for _, r := range old {
		_ = r.Close()
	}
}

// close waits for the reads that go on, and closes all.
func (p *readers) close() {
	for range maxReaders {
		p.slots <- struct{}{}
	}
	for r := p.take(); r != nil; r = p.take() {
		_ = r.Close()
	}
}

// Read runs fn on one snapshot of the ledger. fn must not write. A long read prevents the -wal file from
// being reused, so split a read of many pages into several.
func (s *Store) Read(ctx context.Context, fn func(*Tx) error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	select {
	case s.readers.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.quit:
		return ErrClosed
	}
	r := s.readers.take()
	if err := s.engine.CheckReplaced(); err != nil {
		s.readers.put(r)
		return err
	}
	r, at, err := s.snapshot(ctx, r)
	if err != nil {
		s.readers.put(r)
		return err
	}
	if r.Pipelined {
		defer func() { go s.giveBack(r) }() // the caller need not wait for the answer
	} else {
		defer s.giveBack(r)
	}
	return fn(newReadTx(s, r, at))
}

// giveBack ends the snapshot on r and returns r to the pool.
func (s *Store) giveBack(r *session) {
	r.dictionary.keep() // what a snapshot shows is committed
	if _, err := r.Exec(`ROLLBACK`); err != nil {
		_ = r.Close()
		r = nil
	}
	s.readers.put(r)
}

// snapshot begins one on the connection r, or on a new one if r is nil or has died since it was last used.
func (s *Store) snapshot(ctx context.Context, r *session) (*session, engine.Head, error) {
	if r != nil {
		at, err := s.engine.BeginSnapshot(ctx, r.Session)
		if err == nil {
			return r, at, nil
		}
		_ = r.Close()
		if !errors.Is(err, ErrIO) || ctx.Err() != nil {
			return nil, at, err
		}
	}
	on, err := s.engine.OpenReader(ctx)
	if err != nil {
		return nil, engine.Head{}, fmt.Errorf("read %s: %w", s.info.Path, s.engine.Diagnose(err))
	}
	r = &session{Session: on}
	at, err := s.engine.BeginSnapshot(ctx, r.Session)
	if err != nil {
		_ = r.Close()
		return nil, at, err
	}
	return r, at, nil
}
