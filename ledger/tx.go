package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/internal/engine"
	"jobledger/ledger/internal/session"
)

// Tx is a transaction of a Store, or its snapshot when reading, as one function sees it. When that function
// has ended, what reads or writes with its Tx returns ErrTxDone, and so do the iterators that it has left.
//
// In the optimistic mode, writes are buffered and sent in bulk, before any read and at the end. A conflict
// comes to light when its rows are sent; the Store then runs the functions again in the savepoint mode, one
// by one, where each write is sent at once and a Put itself returns ErrConflict.
type Tx struct {
	*transaction
	turn int64 // of the function that it was given to; 0: it is the Store's own
}

// transaction is what the functions of a group share.
type transaction struct {
	turns      atomic.Int64 // the turn of the function that runs; another one, when none does
	running    *Tx          // of the function that runs
	store      *Store
	session    *session.Session
	cache      *TxCache // nil: none
	savepoints bool     // the savepoint mode
	readOnly   bool

	clock        time.Time // the engine's, when the transaction began; zero: it has none
	now          time.Time // the one reading of the clock; zero until asked for
	base         int64     // the last pos that was committed when the transaction began
	tail, tailAt int64     // the last pos and its at
	buffers      []*buffer
	values       []any   // of the row that is being inserted
	spare        []any   // of a buffer that was sent, for the next
	fn           segment // of the running function
	waits        *bool   // whether some job waits for another, or is held; nil: not read yet
	err          error   // the transaction cannot go on
}

// segment is the part of a transaction that belongs to one function.
type segment struct {
	waited       time.Duration // for the write lock
	tail, tailAt int64         // of the ledger, before the function
	sent         bool          // some of its rows were sent, so that it cannot be undone in the buffers
	atEnd        EndHook       // nil: none
	err          error         // of a write that may be half done: the function cannot succeed
}

func newTx(s *Store, on *session.Session, at engine.Head) *Tx {
	tx := ownTx(&transaction{store: s, session: on, base: at.Tail, tail: at.Tail, tailAt: at.TailAt,
		clock: at.Now})
	for _, a := range at.Prefetched {
		if a.Query == anyDependency && len(a.Rows) == 1 {
			n, _ := a.Rows[0][0].(int64)
			tx.waits = new(n > 0)
		}
	}
	return tx
}

// ownTx returns the Tx of the Store itself.
func ownTx(t *transaction) *Tx {
	t.running = &Tx{transaction: t}
	return t.running
}

// forFunction makes one the Tx of a function that runs next, and returns it.
func (tx *Tx) forFunction(one *Tx) *Tx {
	*one = Tx{tx.transaction, tx.turns.Add(1)}
	tx.running = one
	return one
}

// end makes tx useless, and closes the rows that its function has left open.
func (tx *Tx) end() {
	tx.turns.Add(1)
	tx.session.CloseRows(ErrTxDone)
}

// done returns ErrTxDone if the function that tx was given to has ended.
func (tx *Tx) done() error {
	if tx.turn != 0 && tx.turn != tx.turns.Load() {
		return ErrTxDone
	}
	return nil
}

// newReadTx returns the Tx of a snapshot.
func newReadTx(s *Store, on *session.Session, at engine.Head) *Tx {
	tx := newTx(s, on, at)
	tx.readOnly = true
	return tx
}

// Now returns the transaction's one reading of the clock, UTC in whole microseconds. Rules judge by it.
func (tx *Tx) Now() time.Time {
	if tx.now.IsZero() {
		switch {
		case tx.store.Now != nil:
			tx.now = tx.store.Now()
		case !tx.clock.IsZero():
			tx.now = tx.clock
		default:
			tx.now = time.Now()
		}
		tx.now = event.FromMicros(tx.now.UnixMicro())
	}
	return tx.now
}

// At returns what an event appended now is stamped with: Now, raised to the at of the event before it (I7).
func (tx *Tx) At() time.Time { return event.FromMicros(max(tx.Now().UnixMicro(), tx.tailAt)) }

// Tail returns the pos of the last event; 0 in an empty ledger.
func (tx *Tx) Tail(context.Context) (int64, error) {
	if err := tx.done(); err != nil {
		return 0, err
	}
	if !tx.readOnly {
		return tx.tail, nil
	}
	pos, _, err := tx.session.Session.Tail()
	return pos, err
}

// Whole reports whether the Store is a whole copy: see Store.Whole.
func (tx *Tx) Whole() bool { return tx.store.Whole }

// BodyLeft reports whether the body of the event at pos, of the job n, has left the ledger of which this is a
// copy, with the job itself.
func (tx *Tx) BodyLeft(ctx context.Context, n, pos int64) (left bool, err error) {
	if tx.store.Of == nil {
		return false, nil
	}
	err = tx.store.Of.Read(ctx, func(of *Tx) error {
		_, there, err := of.EventAt(ctx, n)
		if err != nil || there {
			left = false
			return err
		}
		_, _, kept, err := of.Body(ctx, pos)
		left = err == nil && !kept
		return err
	})
	return left, err
}

// ArchivedLeaves is Store.Archived; ErrDamaged if that is nil: an event is missing.
func (tx *Tx) ArchivedLeaves(ctx context.Context, from, to int64, fn func(leaf []byte) error) error {
	if tx.store.Archived == nil {
		return fmt.Errorf("%w: event %d is missing", ErrDamaged, from+1)
	}
	return tx.store.Archived(ctx, from, to, fn)
}

// Waited returns how long the running function waited for the write lock.
func (tx *Tx) Waited() time.Duration { return tx.fn.waited }

// Exec runs a statement after everything that was written before it, and returns the number of rows that it
// changed.
func (tx *Tx) Exec(query string, args ...any) (changed int64, err error) {
	err = tx.unbuffered(func(s *engine.Session) (err error) {
		changed, err = s.Exec(query, args...)
		return err
	})
	return changed, err
}

// unbuffered runs fn on the session after everything that was written before it. What fn writes cannot be
// undone in the buffers.
func (tx *Tx) unbuffered(fn func(*engine.Session) error) error {
	if err := tx.flush(); err != nil {
		return err
	}
	tx.fn.sent = true
	return tx.check(fn(tx.session.Session))
}

// check notes an error after which the transaction cannot go on, such as one of rows that were sent before.
func (tx *Tx) check(err error) error {
	if err == nil || tx.readOnly || errors.Is(err, ErrTxDone) {
		return err
	}
	if errors.Is(err, engine.ErrRetry) || !tx.savepoints && tx.session.Aborted() {
		tx.err = fmt.Errorf("%w: %w", engine.ErrRetry, err)
	}
	return err
}

// EndHook is what a function of a write transaction leaves to be done once at its end.
type EndHook interface {
	// End runs after the function, unless that failed. What it writes belongs to the function.
	End(tx *Tx) error
}

// EndHook returns what SetEndHook set in the running function; nil: nothing.
func (tx *Tx) EndHook() EndHook { return tx.fn.atEnd }

// SetEndHook has h run at the end of the running function, in place of another one.
func (tx *Tx) SetEndHook(h EndHook) { tx.fn.atEnd = h }

// beginSegment begins the segment of a function.
func (tx *Tx) beginSegment(waited time.Duration) {
	tx.fn = segment{waited: waited, tail: tx.tail, tailAt: tx.tailAt}
	for _, b := range tx.buffers {
		b.before = b.rows
	}
}

// undoSegment removes the rows of the running function from the buffers; false if some of them were sent.
func (tx *Tx) undoSegment() bool {
	if tx.fn.sent {
		return false
	}
	tx.tail, tx.tailAt = tx.fn.tail, tx.fn.tailAt
	for _, b := range tx.buffers {
		b.rows, b.args = b.before, b.args[:b.before*b.stmt.Width()]
	}
	return true
}
