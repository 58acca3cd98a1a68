package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"jobledger/ledger/failpoint"
)

// Store is an open ledger. It is safe for concurrent use; Close it when done.
type Store struct {
	// Now is the clock, read once per transaction after the write lock is held; nil means time.Now. Set it
	// before first use.
	Now func() time.Time

	// Alone says that no other process writes to this ledger, so that Watch need not listen to any. Set it before
	// first use.
	Alone bool

	path, dsn, sync string
	version         int         // of the schema
	file            os.FileInfo // the file that was opened, to notice another one in its place
	lockWait        time.Duration
	groupTime       time.Duration

	writer   *session
	turn     turn // the commit loop's own
	requests chan *request
	readers  chan *session // nil: not opened yet
	closed   atomic.Bool
	quit     chan struct{} // closed: no further requests
	ended    chan struct{} // closed: the commit loop has ended

	announces bool // the open transaction makes a job claimable; as the bell, the commit loop's own
	bell      bell
	watchers  watchers
}

// Path returns the absolute path of the ledger's file.
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
	err := s.begin(first.ctx, first.since)
	if err == nil {
		group, err = s.runFast(group)
		if errors.Is(err, errRedo) {
			if err = s.rollback(); err == nil {
				if err = s.begin(context.Background(), time.Now()); err == nil {
					err = s.runCareful(group)
				}
			}
		}
	}
	if err == nil {
		failpoint.Hit("commit")
		err = s.commit()
	} else {
		_ = s.rollback()
	}
	failpoint.Hit("answer")
	for _, r := range group {
		if err != nil {
			r.err = err // its own may rest on what a neighbour wrote, and that is gone
		}
		r.done <- withObstacle(s.path, r.err)
	}
}

// errRedo asks for the careful way.
var errRedo = errors.New("ledger: redo carefully")

// runFast runs the group's functions and those that come while the transaction is open.
func (s *Store) runFast(group []grouped) ([]grouped, error) {
	tx := newTx(s, s.writer, false)
	if err := tx.start(); err != nil {
		return group, err
	}
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
		if group[i].err != nil && !tx.cutBack(mark) {
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

func (s *Store) runCareful(group []grouped) error {
	tx := newTx(s, s.writer, true)
	if err := tx.start(); err != nil {
		return err
	}
	for i := range group {
		mark := tx.mark()
		if _, err := s.writer.exec(`SAVEPOINT one`); err != nil {
			return err
		}
		group[i].err = tx.run(group[i].request)
		if tx.broken != nil {
			return tx.broken
		}
		if group[i].err != nil {
			if _, err := s.writer.exec(`ROLLBACK TO one`); err != nil {
				return err
			}
			s.writer.dictionary.forget()
			tx.tail, tx.tailAt = mark.tail, mark.tailAt
		}
		if _, err := s.writer.exec(`RELEASE one`); err != nil {
			return err
		}
	}
	return nil
}

// begin takes the write lock for a function that has waited since then. A process that others get in the way of lines
// up for it with them.
func (s *Store) begin(ctx context.Context, since time.Time) error {
	immediate := func() error {
		_, err := s.writer.exec(`BEGIN IMMEDIATE`)
		return err
	}
	failpoint.Hit("begin")
	var err error
	linesUp := s.turn.linesUp()
	if !linesUp {
		err = immediate()
		linesUp = isBusy(err) && !s.Alone
	}
	if linesUp {
		s.turn.take(ctx, s.path, s.lockWait-time.Since(since), isBusy(err))
	}
	if linesUp || isBusy(err) {
		err = retryBusy(ctx, since, s.lockWait, immediate)
	}
	if err != nil {
		s.turn.give()
		return err
	}
	failpoint.Hit("begun")
	s.writer.broken = nil
	s.announces = false
	return s.sameFile()
}

// sameFile makes sure that the file is still the one that was opened: commits to a file that was replaced or
// removed would succeed and be lost.
func (s *Store) sameFile() error {
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, s.file) {
		return fmt.Errorf("%w: %s", ErrReplaced, s.path)
	}
	return err
}

func (s *Store) rollback() error {
	s.writer.dictionary.forget()
	_, err := s.writer.exec(`ROLLBACK`)
	s.turn.give()
	return err
}

func (s *Store) commit() error {
	_, err := s.writer.exec(`COMMIT`)
	if err == nil {
		failpoint.Hit("committed")
		s.turn.give()
		s.writer.dictionary.keep()
		if err := s.sameFile(); err != nil { // exchanged meanwhile: what was written may be in no ledger any more
			return fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		if s.announces {
			s.announce()
		}
		return nil
	}
	_ = s.rollback()
	return fmt.Errorf("%w: %w", ErrUnknown, err)
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
	defer func() { s.readers <- r }()
	if err := s.sameFile(); err != nil {
		return err
	}
	if r == nil {
		fresh, err := connect(ctx, readerURL(s.path))
		if err != nil {
			return fmt.Errorf("read %s: %w", s.path, withObstacle(s.path, explain(err)))
		}
		r = fresh
	}
	if _, err := r.exec(`BEGIN`); err != nil {
		_ = r.close()
		r = nil
		return err
	}
	tx := newTx(s, r, false)
	tx.readOnly = true
	err := fn(tx)
	r.dictionary.keep() // what a snapshot shows is committed
	if _, rollbackErr := r.exec(`ROLLBACK`); rollbackErr != nil {
		_ = r.close()
		r = nil
	}
	return err
}

// Close waits for the transaction under way and closes the ledger. Requests that wait get ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.quit)
	<-s.ended
	s.turn.close()
	s.bell.close()
	s.watchers.close()
	for range maxReaders {
		if r := <-s.readers; r != nil {
			_ = r.close()
		}
	}
	return s.writer.close()
}

// Vacuum writes a compacted, consistent copy of the ledger to path, which must not exist or be empty, while others
// write, and returns the pos of the last event in it, read back from the copy. SQLite does not make the copy
// durable: sync the file before relying on it.
func (s *Store) Vacuum(ctx context.Context, path string) (tail int64, err error) {
	if path, err = filepath.Abs(path); err != nil { // also so that no name is taken for a URI
		return 0, err
	}
	db, err := sql.Open("sqlite", vacuumURL(s.path))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, path); err != nil {
		return 0, explain(err)
	}
	failpoint.Hit("vacuumed")
	if err := checkForeign(ctx, path); err != nil {
		return 0, err
	}
	written, err := sql.Open("sqlite", immutableURL(path))
	if err != nil {
		return 0, err
	}
	defer written.Close()
	err = written.QueryRowContext(ctx, `SELECT coalesce(max(pos), 0) FROM events`).Scan(&tail)
	return tail, explain(err)
}
