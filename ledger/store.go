package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"jobledger/ledger/failpoint"
)

// Store is an open ledger. It is safe for concurrent use; Close it when done.
type Store struct {
	// Now is the clock, read once per transaction after the write lock is held; nil means time.Now, and with PostgreSQL
	// the server's clock, since hosts differ. Set it before first use.
	Now func() time.Time

	// Alone says that no other process writes to this ledger, so that Watch need not listen to any. Set it before
	// first use.
	Alone bool

	dsn, path, sync string
	version         int // of the schema
	lockWait        time.Duration
	groupTime       time.Duration

	engine   engine
	cache    *TxCache // of the writer; used by the commit loop only
	writer   *session // of the open transaction; the commit loop's own
	requests chan *request
	readers  chan *session // nil: not opened yet
	closed   atomic.Bool
	quit     chan struct{} // closed: no further requests
	ended    chan struct{} // closed: the commit loop has ended

	announces bool // the open transaction makes a job claimable; the commit loop's own
	watchers  watchers
}

// newStore returns a Store of the ledger at dsn, which has no engine yet.
func newStore(dsn string) *Store {
	s := &Store{dsn: dsn, cache: &TxCache{}, lockWait: lockWait, groupTime: maxGroupTime, requests: make(chan *request, 1024),
		readers: make(chan *session, maxReaders), quit: make(chan struct{}), ended: make(chan struct{})}
	for range maxReaders {
		s.readers <- nil
	}
	return s
}

// Path returns the absolute path of the ledger's file, or the address of one in PostgreSQL, without a password.
func (s *Store) Path() string { return s.path }

// DSN returns what the ledger was opened with.
func (s *Store) DSN() string { return s.dsn }

// Sync returns how durable a commit is: "full" or "normal".
func (s *Store) Sync() string { return s.sync }

// SchemaVersion returns the version of the file's schema. It is the newest that this program knows, since Open
// migrates.
func (s *Store) SchemaVersion() int { return s.version }

const (
	lockWait     = 30 * time.Second     // that a function waits for the write lock, then ErrBusy
	maxGroup     = 512                  // functions per transaction
	maxTries     = 5                    // to carry out a transaction that others, or a lost connection, came in the way of
	maxGroupTime = 8 * time.Millisecond // after which a transaction takes no further functions
)

// request is one function that waits for its transaction.
type request struct {
	ctx   context.Context // of the caller; checked before the function starts, not after
	fn    func(*Tx) error
	since time.Time
	state atomic.Int32 // waiting, taken or left
	done  chan error
}

const (
	waiting int32 = iota
	taken         // by the commit loop: its outcome will be told
	left          // by its caller, before it was taken
)

// Write runs fn in a write transaction and returns when that is durable. Functions that wait at the same time
// share one transaction; each keeps its own outcome, and one that fails takes back its own part only.
//
// fn must be short (no network, no child process, no user's code), it may run more than once, and nothing that it
// computed may be used unless Write returned nil. Errors: what fn returned; ErrBusy; ErrFull; ErrReplaced;
// ErrUnknown when COMMIT failed, so that nobody knows whether it is durable.
func (s *Store) Write(ctx context.Context, fn func(*Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := &request{ctx: ctx, fn: fn, since: time.Now(), done: make(chan error, 1)}
	select {
	case s.requests <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.quit:
		return ErrClosed
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, left) {
			return context.Cause(ctx)
		}
	case <-s.ended: // it may have come into the queue after the loop had emptied that
		if r.state.CompareAndSwap(waiting, left) {
			return ErrClosed
		}
	}
	return <-r.done
}

// commitLoop is the one writer: it takes a request, opens a transaction, adds whatever else waits, and commits.
func (s *Store) commitLoop() {
	defer close(s.ended)
	for {
		select {
		case first := <-s.requests:
			s.commitGroup(first)
		case <-s.quit:
			for {
				select {
				case r := <-s.requests:
					if r.state.CompareAndSwap(waiting, taken) {
						r.done <- ErrClosed
					}
				default:
					return
				}
			}
		}
	}
}

// grouped is a request of the current transaction with the outcome of its function.
type grouped struct {
	*request
	err error
}

// commitGroup runs one transaction. First the fast way: writes are buffered, sent as lists and compared by their
// count. If that count is wrong, or a function failed after its writes had been sent, everything is rolled back
// and done again the careful way: each function by itself behind a savepoint, each write checked at once.
func (s *Store) commitGroup(first *request) {
	if !first.state.CompareAndSwap(waiting, taken) {
		return
	}
	group := append(make([]grouped, 0, 16), grouped{request: first})
	group, err := s.attempt(first.ctx, group, first.since, s.runFast)
	for tries := 0; tries < maxTries && errors.Is(err, errRedo); tries++ {
		group, err = s.attempt(context.Background(), group, time.Now(), s.runCareful)
	}
	if errors.Is(err, errRedo) && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrIO) {
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	failpoint.Hit("answer")
	for _, r := range group {
		if err != nil {
			r.err = err // its own may rest on what a neighbour wrote, and that is gone
		}
		r.done <- s.engine.obstacle(r.err)
	}
}

// attempt runs one transaction of a group.
func (s *Store) attempt(ctx context.Context, group []grouped, since time.Time, run func(*Tx, []grouped) ([]grouped, error)) ([]grouped, error) {
	var at standing
	var err error
	s.announces = false
	if s.writer, at, err = s.engine.begin(ctx, since); err != nil {
		return group, err
	}
	s.writer.broken = nil
	tx := newTx(s, s.writer, at)
	s.cache.begin(tx)
	if group, err = run(tx, group); err == nil {
		failpoint.Hit("commit")
		err = s.engine.commit()
	}
	if err != nil {
		s.writer.dictionary.forget()
		s.cache.Invalidate()
		if rollbackErr := s.engine.rollback(); errors.Is(err, errRedo) && rollbackErr != nil {
			err = rollbackErr
		}
		return group, err
	}
	s.writer.dictionary.keep()
	s.cache.committed(tx.base, tx.tail)
	if err := s.engine.same(); err != nil { // exchanged meanwhile: what was written may be in no ledger any more
		return group, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if s.announces {
		s.announce()
	}
	return group, nil
}

// errRedo asks for the careful way.
var errRedo = errors.New("ledger: the transaction was given up")

// runFast runs the group's functions and those that come while the transaction is open.
func (s *Store) runFast(tx *Tx, group []grouped) ([]grouped, error) {
	start := time.Now()
	for i := 0; ; i++ {
		if i == len(group) {
			if i == maxGroup || time.Since(start) > s.groupTime {
				break
			}
			r := s.nextWaiting()
			if r == nil {
				break
			}
			group = append(group, grouped{request: r})
		}
		mark := tx.mark()
		group[i].err = tx.run(group[i].request)
		if tx.broken != nil {
			return group, tx.broken
		}
		if group[i].err == nil {
			continue
		}
		tx.cache.Invalidate()
		if !tx.cutBack(mark) {
			return group, errRedo
		}
	}
	return group, tx.flush()
}

// run runs r's function and makes sure that one whose writes failed does not succeed.
func (tx *Tx) run(r *request) error {
	tx.waited, tx.failed = time.Since(r.since), nil
	err := r.fn(tx)
	if tx.broken == nil {
		tx.broken = tx.session.broken
	}
	if err == nil {
		err = tx.failed
	}
	return err
}

// nextWaiting takes the next request whose caller still waits; nil if there is none now.
func (s *Store) nextWaiting() *request {
	for {
		select {
		case r := <-s.requests:
			if r.state.CompareAndSwap(waiting, taken) {
				return r
			}
		default:
			return nil
		}
	}
}

func (s *Store) runCareful(tx *Tx, group []grouped) ([]grouped, error) {
	tx.careful = true
	for i := range group {
		if group[i].ctx.Err() != nil { // its caller has gone while others were in the way
			group[i].err = context.Cause(group[i].ctx)
			continue
		}
		mark := tx.mark()
		if _, err := s.writer.exec(`SAVEPOINT one`); err != nil {
			return group, err
		}
		group[i].err = tx.run(group[i].request)
		if tx.broken != nil {
			return group, tx.broken
		}
		if group[i].err != nil {
			if _, err := s.writer.exec(`ROLLBACK TO one`); err != nil {
				return group, err
			}
			s.writer.dictionary.forget()
			tx.cache.Invalidate()
			tx.tail, tx.tailAt = mark.tail, mark.tailAt
		}
		if _, err := s.writer.exec(`RELEASE one`); err != nil {
			return group, err
		}
	}
	return group, nil
}

// Read runs fn on one snapshot of the ledger. fn must not write. Long reads keep the -wal file from being reused,
// so a read that pages through much should be several.
func (s *Store) Read(ctx context.Context, fn func(*Tx) error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	var r *session
	select {
	case r = <-s.readers:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.quit:
		return ErrClosed
	}
	if err := s.engine.same(); err != nil {
		s.readers <- r
		return err
	}
	r, at, err := s.snapshot(ctx, r)
	if err != nil {
		s.readers <- r
		return err
	}
	if r.streams {
		defer func() { go s.giveBack(r) }() // nobody need wait for the answer
	} else {
		defer s.giveBack(r)
	}
	tx := newTx(s, r, at)
	tx.readOnly = true
	return fn(tx)
}

// giveBack ends the snapshot on r.
func (s *Store) giveBack(r *session) {
	r.dictionary.keep() // what a snapshot shows is committed
	if _, err := r.exec(`ROLLBACK`); err != nil {
		_ = r.close()
		r = nil
	}
	s.readers <- r
}

// snapshot begins one on the connection r, or on a fresh one: where r is nil, and where it has died since it was last used.
func (s *Store) snapshot(ctx context.Context, r *session) (*session, standing, error) {
	if r != nil {
		at, err := s.engine.look(ctx, r)
		if err == nil {
			return r, at, nil
		}
		_ = r.close()
		if !errors.Is(err, ErrIO) || ctx.Err() != nil {
			return nil, at, err
		}
	}
	r, err := s.engine.snapshot(ctx)
	if err != nil {
		return nil, standing{}, fmt.Errorf("read %s: %w", s.path, s.engine.obstacle(err))
	}
	at, err := s.engine.look(ctx, r)
	if err != nil {
		_ = r.close()
		return nil, at, err
	}
	return r, at, nil
}

// Close waits for the transaction under way and closes the ledger. Requests that wait get ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.quit)
	<-s.ended
	s.watchers.close()
	for range maxReaders {
		if r := <-s.readers; r != nil {
			_ = r.close()
		}
	}
	return s.engine.close()
}
