package ledger

import (
	"context"
	"errors"
)

// peek is a short read that waits to run on the connection of the commit loop.
type peek struct {
	ctx  context.Context
	fn   func(*Tx) error
	done chan error
}

// errNotPeeked says that the read has to run on another connection.
var errNotPeeked = errors.New("ledger: no connection for a short read")

// Peek is Read for a function that takes some milliseconds at most, and that an idle process calls now and
// then. With a ledger on a server it uses the connection of the writer while that has nothing to do, so that
// it needs none of its own.
func (s *Store) Peek(ctx context.Context, fn func(*Tx) error) error {
	if s == nil || s.engine == nil || s.closed.Load() {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p := &peek{ctx, fn, make(chan error, 1)}
	select {
	case s.peeks <- p: // the commit loop waits for something to do
		if err := <-p.done; !errors.Is(err, errNotPeeked) {
			return rethrow(err)
		}
	default:
	}
	return s.read(ctx, fn, false)
}

// runPeek runs p on the writer's connection.
func (s *Store) runPeek(p *peek) {
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
	err = s.call(newReadTx(s, s.writer, at).forFunction(new(Tx)), p.fn)
	s.peeking = nil
	if s.writer.Lost != nil || errors.Is(err, ErrIO) {
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
