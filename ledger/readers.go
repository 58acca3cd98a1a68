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
	slots  chan struct{} // holds one element for each read that goes on
	normal chan struct{} // likewise, for those on one of the normal connections; nil: all are normal

	mu      sync.Mutex
	idle    []idle // the one that was used last at the end
	closing bool   // a goroutine will close those that have been idle for long
}

type idle struct {
	*session
	since time.Time
}

// On a server, reads share fewer connections unless one would have to wait for long.
const (
	normalReaders = 2
	extraWait     = 20 * time.Millisecond
)

// begin waits until a read may begin, and returns how to end it.
func (p *readers) begin(ctx context.Context, quit <-chan struct{}) (end func(), err error) {
	normal := false
	if p.normal != nil {
		timer := time.NewTimer(extraWait)
		defer timer.Stop()
		select {
		case p.normal <- struct{}{}:
			normal = true
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-quit:
			return nil, ErrClosed
		}
	}
	select {
	case p.slots <- struct{}{}:
		return func() {
			<-p.slots
			if normal {
				<-p.normal
			}
		}, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-quit:
		err = ErrClosed
	}
	if normal {
		<-p.normal
	}
	return nil, err
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

// put gives one back.
func (p *readers) put(r *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, idle{r, time.Now()})
	if r.Pipelined && !p.closing { // to a server
		p.closing = true
		time.AfterFunc(idleReader, p.closeIdle)
	}
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
	end, err := s.readers.begin(ctx, s.quit)
	if err != nil {
		return err
	}
	r := s.readers.take()
	err = s.engine.CheckReplaced()
	if err != nil && r != nil {
		s.readers.put(r)
	}
	var at engine.Head
	if err == nil {
		r, at, err = s.snapshot(ctx, r)
	}
	if err != nil {
		end()
		return err
	}
	if r.Pipelined {
		defer func() { go s.giveBack(r, end) }() // the caller need not wait for the answer
	} else {
		defer s.giveBack(r, end)
	}
	return fn(newReadTx(s, r, at))
}

// giveBack ends the snapshot on r and returns r to the pool.
func (s *Store) giveBack(r *session, end func()) {
	r.dictionary.keep() // what a snapshot shows is committed
	if _, err := r.Exec(`ROLLBACK`); err != nil {
		_ = r.Close()
	} else {
		s.readers.put(r)
	}
	end()
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
