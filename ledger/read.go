package ledger

import (
	"context"
	"errors"
	"fmt"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/session"
)

// Read runs fn on one snapshot of the ledger, all of it durable. fn must not write. A long read prevents
// the -wal file from being reused, so split a read of many pages into several.
func (s *Store) Read(ctx context.Context, fn func(*Tx) error) error {
	return s.read(ctx, fn, true)
}

// Read returns what fn reads on one snapshot of s: see [Store.Read].
func Read[T any](ctx context.Context, s *Store, fn func(*Tx) (T, error)) (answer T, err error) {
	err = s.Read(ctx, func(tx *Tx) (err error) {
		answer, err = fn(tx)
		return err
	})
	return answer, err
}

// read is Read; with durable, what it shows must be durable, because it may be reported outside of the
// process.
func (s *Store) read(ctx context.Context, fn func(*Tx) error, durable bool) error {
	if s == nil || s.engine == nil || s.closed.Load() {
		return ErrClosed
	}
	end, err := s.readers.Begin(ctx, s.quit)
	if err != nil {
		return err
	}
	r := s.readers.Take()
	var at engine.Head
	if err = s.engine.CheckReplaced(); err == nil {
		r, at, err = s.snapshot(ctx, r)
	} else if r != nil {
		s.readers.Put(r)
	}
	if err != nil {
		end()
		if s.peeks != nil && errors.Is(err, ErrBusy) {
			return s.borrow(ctx, fn, err)
		}
		return err
	}
	if r.Pipelined {
		defer func() { go s.giveBack(r, end) }() // the caller need not wait for the answer
	} else {
		defer s.giveBack(r, end)
	}
	tx := newReadTx(s, r, at).forFunction(new(Tx))
	defer tx.end() // before the connection is given back
	if durable && s.late != nil {
		if _, err := tx.Tail(ctx); err == nil { // the snapshot begins with it
			_ = s.late.Sync() // where the disk fails, it still can be read
		}
	}
	err = fn(tx)
	if still, ok := s.engine.(engine.Stiller); ok && (err == nil || errors.Is(err, ErrDamaged)) {
		if written := still.Still(r.Session); written != nil {
			return written
		}
	}
	return err
}

// giveBack ends the snapshot on r and returns r to the pool.
func (s *Store) giveBack(r *session.Session, end func()) {
	r.KeepNames() // what a snapshot shows is committed
	if _, err := r.Exec(`ROLLBACK`); err != nil {
		_ = r.Close()
	} else {
		s.readers.Put(r)
	}
	end()
}

// snapshot begins one on the connection r, or on a new one if r is nil or has died since it was last used.
func (s *Store) snapshot(ctx context.Context, r *session.Session) (*session.Session, engine.Head, error) {
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
	r = session.New(on)
	at, err := s.engine.BeginSnapshot(ctx, r.Session)
	if err != nil {
		_ = r.Close()
		return nil, at, err
	}
	return r, at, nil
}
