package ledger

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/session"
)

// Store is an open ledger. It is safe for concurrent use; Close it when done. A nil or zero Store is closed.
type Store struct {
	// Now is the clock, read once per transaction after the write lock is held; nil means time.Now, and with
	// PostgreSQL the server's clock, since hosts differ. Set it before first use.
	Now func() time.Time

	// Exclusive declares that no other process writes to this ledger; Watch then skips the notification between
	// processes. Set it before first use.
	Exclusive bool

	// Whole declares that every event is in it, including those that the original ledger has lost to its
	// archive. Set it before first use.
	Whole bool

	// Of is the ledger whose whole copy this is, made to answer questions; nil: this is not a copy. Payloads and
	// results are read from there. Set it before first use.
	Of *Store

	// Closed is called by Close at its end; nil: nothing is. Set it before first use.
	Closed func()

	// Archived calls fn with the texts of the leaves from, …, to-1 of the hash tree, whose events have left the
	// ledger; nil: where its archive is is not known. Set it before first use.
	Archived func(ctx context.Context, from, to int64, fn func(leaf []byte) error) error

	dsn       string
	info      engine.Info
	lockWait  time.Duration
	groupTime time.Duration

	engine   engine.Engine
	cache    *TxCache         // only the commit loop uses it
	writer   *session.Session // nil: no transaction yet; only the commit loop uses it
	noDeps   int64            // the tail at which deps had no row; 0: unknown. Only the commit loop uses it
	tail     int64            // after the last transaction; only the commit loop uses it
	bursts   bursts
	group    []grouped // of the open transaction; this and the next three: only the commit loop uses them
	at       int       // the place in group of the function that runs
	peeking  *peek     // the short read that runs; nil: none
	exited   bool      // the function that ran last has ended the goroutine of the commit loop
	requests chan *request
	readers  *session.Pool
	late     engine.LateSyncer // nil: a commit is durable
	unsynced chan unsynced     // to the loop that syncs
	synced   chan struct{}     // closed: the loop that syncs has ended
	peeks    chan *peek        // nil: short reads are as any other
	shares   atomic.Int64      // calls of Share that no Close has ended yet
	closed   atomic.Bool
	quit     chan struct{} // closed: no further requests
	ended    chan struct{} // closed: the commit loop has ended

	written   atomic.Int64                 // the tail after the last transaction
	coming    atomic.Pointer[func() int64] // see SetComing
	functions atomic.Int64                 // that have begun or ended; odd: one runs now
	loopID    atomic.Int64                 // of the goroutine of the commit loop

	altered   atomic.Pointer[error] // why nothing may be written; nil: the schema is as it should be
	announces engine.Topic          // of the open transaction; only the commit loop uses it
	watchers  engine.Watchers
}

// newStore returns a Store whose commit loop has not been started.
func newStore(dsn string, e engine.Engine) *Store {
	s := &Store{
		dsn: dsn, info: e.Info(), engine: e, cache: &TxCache{}, lockWait: lockWait, groupTime: maxGroupTime,
		requests: make(chan *request, 1024), readers: session.NewPool(engine.IsServerAddress(dsn)),
		quit: make(chan struct{}), ended: make(chan struct{}),
	}
	if engine.IsServerAddress(dsn) {
		s.peeks = make(chan *peek)
	}
	if late, ok := e.(engine.LateSyncer); ok && late.Late() {
		s.late, s.unsynced, s.synced = late, make(chan unsynced, 64), make(chan struct{})
		go s.syncLoop()
	}
	if s.info.Altered != nil {
		s.altered.Store(&s.info.Altered)
	}
	return s
}

// Path returns the absolute path of the ledger's file, or the address of one in PostgreSQL, without a
// password.
func (s *Store) Path() string { return s.info.Path }

// LedgerPath returns the path of the ledger that the answers are about: that of Of, or Path if Of is nil.
func (s *Store) LedgerPath() string {
	if s.Of != nil {
		return s.Of.Path()
	}
	return s.Path()
}

// Created reports whether Open made the ledger, because there was none.
func (s *Store) Created() bool { return s.info.Created }

// DSN returns what the ledger was opened with.
func (s *Store) DSN() string { return s.dsn }

// ReadOnly returns why this program may only read the ledger, which is also what Write returns; nil: it may
// write.
func (s *Store) ReadOnly() error { return s.info.ReadOnly }

// ReadNote returns what the readers of a ledger should know that may only be read: that it is read without
// locks, or in a copy; "": nothing.
func (s *Store) ReadNote() string { return s.info.Note }

// SchemaVersion returns the version of the ledger's schema: the newest that this program knows, or a newer
// one on a server.
func (s *Store) SchemaVersion() int { return s.info.SchemaVersion }

// Write runs fn in a write transaction and returns when that is durable. Functions that wait at the same time
// share one transaction; each has its own outcome, and one that fails undoes its own part only.
//
// A panic of fn undoes its part as an error does, and then Write panics with a [Panic] on the goroutine of
// its caller. Where fn calls runtime.Goexit, as t.FailNow of a test does, that ends the caller's goroutine.
//
// fn must be short (no network, no child process, no user code), it may run more than once, and nothing that
// it computed may be used unless Write returned nil. fn must not call what writes to this Store, as a Service
// does: that call returns ErrNested. It must not wait for a write of another goroutine either, which waits
// for fn.
//
// Errors: what fn returned; ErrBusy; ErrFull; ErrReplaced; ErrAltered; ErrNewerSchema; ErrUnknown if COMMIT
// or its sync failed, so that it is not known whether the transaction is durable.
func (s *Store) Write(ctx context.Context, fn func(*Tx) error) error {
	return s.writeOrBurst(ctx, nil, fn)
}

func (s *Store) writeOrBurst(ctx context.Context, plan BurstPlan, fn func(*Tx) error) error {
	if s == nil || s.engine == nil {
		return ErrClosed
	}
	if s.info.ReadOnly != nil {
		return s.info.ReadOnly
	}
	if s.altered.Load() != nil {
		if err := s.checkAltered(ctx); err != nil {
			return err
		}
	}
	return rethrow(s.write(ctx, plan, fn))
}

// Written returns the pos of the last event as of the last Write that has returned, or a later one; 0: there
// was none. Other processes may have appended more since.
func (s *Store) Written() int64 { return s.written.Load() }

// SetComing says how to learn how many goroutines are about to call Write within microseconds: a transaction
// waits for them, 2 ms at most, so that they share it. Without, it waits for none.
func (s *Store) SetComing(count func() int64) { s.coming.Store(&count) }

// WriteRepair is Write even if the schema is altered: fn must put it right with Tx.RepairSchema before it
// writes anything else.
func (s *Store) WriteRepair(ctx context.Context, fn func(*Tx) error) error {
	if s == nil || s.engine == nil {
		return ErrClosed
	}
	if s.info.ReadOnly != nil {
		return s.info.ReadOnly
	}
	err := rethrow(s.write(ctx, nil, fn))
	if err == nil && s.altered.Load() != nil {
		err = s.checkAltered(ctx)
	}
	return err
}

// checkAltered returns ErrAltered if the schema, which was altered when the ledger was opened, still is.
func (s *Store) checkAltered(ctx context.Context) error {
	diff, err := Read(ctx, s, func(tx *Tx) ([]engine.Object, error) { return tx.schemaDiff(ctx) })
	altered := engine.Altered(diff)
	if err == nil && altered == nil {
		s.altered.Store(nil)
	}
	return cmp.Or(err, altered)
}

// Share returns s for one more user, who calls Close as if the ledger were open for that user alone. The last
// call of Close closes the ledger.
func (s *Store) Share() *Store {
	s.shares.Add(1)
	return s
}

// Close waits for the transaction under way and closes the ledger. Requests that wait get ErrClosed.
func (s *Store) Close() error {
	if s.engine == nil || s.shares.Add(-1) >= 0 || s.closed.Swap(true) {
		return nil
	}
	close(s.quit)
	<-s.ended
	if s.late != nil {
		close(s.unsynced)
		<-s.synced
	}
	s.watchers.Close()
	s.readers.Close()
	err := s.engine.Close()
	if s.Closed != nil {
		s.Closed()
	}
	return err
}
