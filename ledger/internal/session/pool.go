package session

import (
	"context"
	"sync"
	"time"

	"jobledger/ledger/internal/engine"
)

const (
	maxReads   = 4                // that go on at once
	idleReader = 10 * time.Second // that a connection to a server is kept for the next read
)

// On a server, reads share fewer connections unless one would have to wait for long.
const (
	normalReads = 2
	extraWait   = 20 * time.Millisecond
)

// Pool holds the connections for reading. The connection used last is used next, so that spare ones stay
// idle, and are closed if they are expensive.
type Pool struct {
	slots  chan struct{} // holds one element for each read that goes on
	normal chan struct{} // likewise, for those on one of the normal connections; nil: all are normal

	mu      sync.Mutex
	idle    []idle // the one that was used last at the end
	closing bool   // a goroutine will close those that have been idle for long
}

type idle struct {
	*Session
	since time.Time
}

// NewPool returns an empty Pool, of connections to a server or to a file.
func NewPool(toServer bool) *Pool {
	p := &Pool{slots: make(chan struct{}, maxReads)}
	if toServer {
		p.normal = make(chan struct{}, normalReads)
	}
	return p
}

// Begin waits until a read may begin, and returns how to end it. Errors: ErrClosed when quit is closed; the
// cause of ctx.
func (p *Pool) Begin(ctx context.Context, quit <-chan struct{}) (end func(), err error) {
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
			return nil, engine.ErrClosed
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
		err = engine.ErrClosed
	}
	if normal {
		<-p.normal
	}
	return nil, err
}

// Take returns an idle connection; nil if there is none.
func (p *Pool) Take() *Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	s := p.idle[last].Session
	p.idle[last] = idle{}
	p.idle = p.idle[:last]
	return s
}

// Put gives one back.
func (p *Pool) Put(s *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, idle{s, time.Now()})
	if s.Pipelined && !p.closing { // to a server
		p.closing = true
		time.AfterFunc(idleReader, p.closeIdle)
	}
}

// closeIdle closes what has been idle for long, and comes back for the others.
func (p *Pool) closeIdle() {
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
	for _, s := range old {
		_ = s.Close()
	}
}

// Close waits for the reads that go on, and closes all.
func (p *Pool) Close() {
	for range maxReads {
		p.slots <- struct{}{}
	}
	for s := p.Take(); s != nil; s = p.Take() {
		_ = s.Close()
	}
}
