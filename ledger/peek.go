package ledger

import (
	"context"
	"errors"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/session"
)

// peek is a read that waits to run on the connection of the commit loop.
type peek struct {
	ctx  context.Context
	fn   func(*Tx) error
	once bool // it must not run again on another connection
	tx   *Tx  // that fn has got
	done chan error
}

// errNotPeeked says that the read has to run on another connection.
var errNotPeeked = errors.New("ledger: no connection for a short read")

// Peek is Read for a function that takes some milliseconds at most, and that an idle process calls now and
// then. For a ledger on a server it uses the writer's idle connection, so that it needs none of its own.
func (s *Store) Peek(ctx context.Context, fn func(*Tx) error) error {
	if s == nil || s.engine == nil || s.closed.Load() {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := &peek{ctx: ctx, fn: fn, done: make(chan error, 1)}
	select {
	case s.peeks <- p: // the commit loop waits for something to do
		if err := <-p.done; !errors.Is(err, errNotPeeked) {
			return rethrow(err)
		}
	default:
	}
	return s.read(ctx, fn, false)
}

// borrow runs fn on the writer's connection, for which it waits for as long as writers wait for their lock: a
// server that gives this process no other connection still answers. noOther says why there is none.
func (s *Store) borrow(ctx context.Context, fn func(*Tx) error, noOther error) error {
	if s.loopID.Load() == goroutineID() {
		if on := s.peeking; on != nil { // a read within a read
			return fn(on.tx)
		}
		return noOther
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.lockWait, noOther)
	defer cancel()
	p := &peek{ctx: ctx, fn: fn, once: true, done: make(chan error, 1)}
	select {
	case s.peeks <- p:
	case <-limited.Done():
		return context.Cause(limited)
	case <-s.quit:
		return ErrClosed
	}
	err := <-p.done
	if errors.Is(err, errNotPeeked) {
		return noOther
	}
	return rethrow(err)
}

// runPeek runs p on the writer's connection.
func (s *Store) runPeek(p *peek) {
	if lender, ok := s.engine.(engine.Lender); ok && s.writer == nil {
		if on := lender.WriterSession(); on != nil {
			s.writer = session.New(on)
		}
	}
	if s.writer == nil {
		p.done <- errNotPeeked
		return
	}
	ctx := context.WithoutCancel(p.ctx) // a cancelled one would cost the connection
	at, err := s.engine.BeginSnapshot(ctx, s.writer.Session)
	if err != nil {
		s.loseWriter()
		p.done <- errNotPeeked
		return
	}
	s.writer.Lost = nil
	s.peeking = p
	p.tx = newReadTx(s, s.writer, at).forFunction(new(Tx))
	err = s.call(p.tx, p.fn)
	s.peeking = nil
	if !p.once && (s.writer.Lost != nil || errors.Is(err, ErrIO)) {
		err = errNotPeeked // it runs again, on another connection
	}
	s.writer.Lost = nil
	s.writer.KeepNames() // what a snapshot shows is committed
	if _, endErr := s.writer.Exec(`ROLLBACK`); endErr != nil {
		s.loseWriter()
	}
	p.done <- err
}

// loseWriter gives the writer's session up after an error; the next transaction connects if necessary.
func (s *Store) loseWriter() {
	_ = s.engine.Rollback()
	s.writer = nil
}
