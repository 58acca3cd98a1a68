package ledger

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/session"
)

const (
	lockWait     = 30 * time.Second     // that a function waits for the write lock, then ErrBusy
	maxGroup     = 512                  // functions per transaction
	maxTries     = 5                    // of a transaction that conflicts, or loses its connection
	maxGroupTime = 8 * time.Millisecond // after which a transaction takes no further functions
)

// request is one function that waits for its transaction.
type request struct {
	ctx   context.Context // of the caller; checked before the function starts, not after
	fn    func(*Tx) error
	plan  BurstPlan // of a burst to try first; nil: none
	since time.Time
	state atomic.Int32 // waiting, taken or left
	done  chan error
	tx    Tx // that fn gets
}

const (
	waiting int32 = iota
	taken         // by the commit loop, which will send its outcome
	left          // by its caller, before it was taken
)

// write has the commit loop run fn, and returns the outcome.
func (s *Store) write(ctx context.Context, plan BurstPlan, fn func(*Tx) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := &request{ctx: ctx, fn: fn, plan: plan, since: time.Now(), done: make(chan error, 1)}
	var suspect <-chan time.Time // fires when the function that runs now may be the caller
	functions := s.functions.Load()
	if functions%2 == 1 {
		timer := time.NewTimer(nestedAfter)
		defer timer.Stop()
		suspect = timer.C
	}
	requests := s.requests // nil: r is in the queue
	for {
		select {
		case requests <- r:
			requests = nil
		case err := <-r.done:
			return err
		case <-ctx.Done():
			return r.leave(context.Cause(ctx))
		case <-s.ended: // it may have come into the queue after the loop had emptied that
			return r.leave(ErrClosed)
		case <-suspect:
			if s.calledWithin(functions) {
				return r.leave(ErrNested)
			}
			suspect = nil
		}
	}
}

// leave gives up waiting and returns why; the outcome where the request was taken before.
func (r *request) leave(why error) error {
	if r.state.CompareAndSwap(waiting, left) {
		return why
	}
	return <-r.done
}

// commitLoop is the one writer: it takes a request, opens a transaction, adds whatever else waits, and
// commits. If a function ends the goroutine, another one goes on.
func (s *Store) commitLoop() {
	defer func() {
		if s.exited {
			go s.commitLoop()
		} else {
			close(s.ended)
		}
	}()
	s.loopID.Store(goroutineID())
	if s.exited {
		s.goOn()
	}
	for {
		select {
		case first := <-s.requests:
			s.commitGroup(first)
		case p := <-s.peeks:
			s.runPeek(p)
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

// commitGroup runs one transaction, first in the optimistic mode: writes are buffered and sent in bulk, and
// the number of changed rows is compared. If that number is wrong, or a function failed after its writes had
// been sent, everything is rolled back and runs again in the savepoint mode: each function in a savepoint of
// its own, each write checked at once.
func (s *Store) commitGroup(first *request) {
	if !first.state.CompareAndSwap(waiting, taken) {
		return
	}
	group := append(make([]grouped, 0, 16), grouped{request: first})
	done, err := s.burst(first)
	if !done {
		group, err = s.attempt(first.ctx, group, first.since, s.runOptimistic)
	}
	if !done && errors.Is(err, engine.ErrRetry) {
		group, err = s.runAgain(group)
	}
	s.finishGroup(group, err)
}

// runAgain runs a group whose transaction was given up in the savepoint mode.
func (s *Store) runAgain(group []grouped) ([]grouped, error) {
	err := engine.ErrRetry
	for tries := 0; tries < maxTries && errors.Is(err, engine.ErrRetry); tries++ {
		group, err = s.attempt(context.Background(), group, time.Now(), s.runSavepoints)
	}
	return group, err
}

// finishGroup answers a group, or leaves that to the loop that syncs.
func (s *Store) finishGroup(group []grouped, err error) {
	if errors.Is(err, engine.ErrRetry) && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrIO) {
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err == nil && s.late != nil {
		s.unsynced <- unsynced{group, s.tail}
		return
	}
	s.answer(group, err)
}

// answer gives the callers of a group their outcomes.
func (s *Store) answer(group []grouped, err error) {
	failpoint.Hit("answer")
	for _, r := range group {
		if _, ok := r.err.(*thrown); ok {
			r.done <- r.err
			continue
		}
		if err != nil {
			r.err = err // its own error may depend on what another function wrote, and that is gone
		}
		r.done <- s.engine.Diagnose(r.err)
	}
}

// attempt runs one transaction of a group.
func (s *Store) attempt(
	ctx context.Context, group []grouped, since time.Time, run func(*Tx, []grouped) ([]grouped, error),
) ([]grouped, error) {
	at, err := s.begin(ctx, since)
	if err != nil {
		return group, err
	}
	tx := newTx(s, s.writer, at)
	if s.noDeps > 0 && s.noDeps == at.Tail { // every change of that table comes with an event
		tx.waits = new(bool)
	}
	s.cache.begin(tx)
	if group, err = run(tx, group); err == nil {
		failpoint.Hit("commit")
		err = s.engine.Commit(s.announcedToOthers())
	}
	if err != nil {
		if rollbackErr := s.giveUp(); errors.Is(err, engine.ErrRetry) && rollbackErr != nil {
			err = rollbackErr
		}
		return group, err
	}
	s.writer.KeepNames()
	s.cache.committed(tx.base, tx.tail)
	if s.tail = tx.tail; s.late == nil {
		s.written.Store(tx.tail)
	}
	if s.noDeps = 0; tx.waits != nil && !*tx.waits {
		s.noDeps = tx.tail
	}
	if err := s.engine.CheckReplaced(); err != nil { // what was written may be in no ledger any more
		return group, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if s.announces != 0 {
		s.announce()
	}
	return group, nil
}

// giveUp rolls the transaction back.
func (s *Store) giveUp() error {
	s.writer.ForgetNames()
	s.cache.Invalidate()
	return s.engine.Rollback()
}

// begin opens a transaction.
func (s *Store) begin(ctx context.Context, since time.Time) (engine.Head, error) {
	s.announces = 0
	warmup := s.cache.warmup(s.writer != nil && s.writer.RoundTrip > longRoundTrip)
	queries := append(slices.Clip(warmup), WarmupQuery{Query: anyDependency})
	on, at, err := s.engine.Begin(ctx, engine.BeginOptions{
		Since: since, LockWait: s.lockWait, Exclusive: s.Exclusive, WarmupQueries: queries,
	})
	if err != nil {
		s.cache.Invalidate()
		return at, err
	}
	if s.writer == nil || s.writer.Session != on { // the first transaction, or the connection was lost
		s.writer, s.noDeps = session.New(on), 0
	}
	if len(warmup) > 0 && len(at.Prefetched) == 0 {
		s.cache.Invalidate()
	}
	s.cache.prefetched = at.Prefetched
	s.writer.Lost = nil
	return at, nil
}

// runOptimistic runs the group's functions and those that come while the transaction is open.
func (s *Store) runOptimistic(tx *Tx, group []grouped) ([]grouped, error) {
	start := time.Now()
	for i := 0; ; i++ {
		if i == len(group) {
			if i == maxGroup || time.Since(start) > s.groupTime {
				break
			}
			r := s.nextComing(start)
			if r == nil {
				break
			}
			group = append(group, grouped{request: r})
		}
		s.group, s.at = group, i
		group[i].err = tx.run(group[i].request)
		if tx.err != nil {
			return group, tx.err
		}
		if group[i].err == nil {
			continue
		}
		tx.cache.Invalidate()
		if _, ok := group[i].err.(*thrown); ok || !tx.undoSegment() { // which may have left a write half done
			return group, engine.ErrRetry
		}
	}
	return group, tx.flush()
}

// run runs r's function. A function whose writes failed cannot succeed, whatever it returns.
func (tx *Tx) run(r *request) error {
	tx.beginSegment(time.Since(r.since))
	err := tx.store.call(tx.forFunction(&r.tx), r.fn)
	if tx.err == nil {
		tx.err = tx.session.Lost
	}
	if err == nil {
		err = tx.fn.err
	}
	return err
}

// maxGather is how long a transaction waits for functions that are coming.
const maxGather = 2 * time.Millisecond

// nextComing is nextWaiting after waiting for callers that are about to call Write: see SetComing.
func (s *Store) nextComing(start time.Time) *request {
	r := s.nextWaiting()
	coming := s.coming.Load()
	if r != nil || coming == nil {
		return r
	}
	for fruitless := 0; fruitless < 2 && time.Since(start) < maxGather; fruitless++ {
		if (*coming)() > 0 {
			fruitless = 0
		}
		runtime.Gosched()
		if r = s.nextWaiting(); r != nil {
			return r
		}
	}
	return nil
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

func (s *Store) runSavepoints(tx *Tx, group []grouped) ([]grouped, error) {
	tx.savepoints = true
	for i := range group {
		if group[i].ctx.Err() != nil { // its caller has given up meanwhile
			group[i].err = context.Cause(group[i].ctx)
			continue
		}
		if _, err := s.writer.Exec(`SAVEPOINT one`); err != nil {
			return group, err
		}
		s.group, s.at = group, i
		group[i].err = tx.run(group[i].request)
		if tx.err != nil {
			return group, tx.err
		}
		if group[i].err != nil {
			if _, err := s.writer.Exec(`ROLLBACK TO one`); err != nil {
				return group, err
			}
			s.writer.ForgetNames()
			tx.cache.Invalidate()
			tx.tail, tx.tailAt = tx.fn.tail, tx.fn.tailAt
		}
		if _, err := s.writer.Exec(`RELEASE one`); err != nil {
			return group, err
		}
	}
	return group, nil
}
