package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"jobledger/ledger/failpoint"
)

// Tx is a transaction of a Store, or its snapshot when reading. It must not be used outside of the function that
// it was given to.
//
// Writes are buffered and sent as lists, before any read and at the end. A buffered write that turns out to
// conflict is noticed when it is sent; the Store then runs the functions again, one by one, and there the Put
// itself returns ErrConflict.
type Tx struct {
	store    *Store
	session  *session
	cache    *TxCache // nil: none
	careful  bool     // send each write at once and check it
	readOnly bool
	waited   time.Duration // of the function that runs now, until it had the write lock

	clock   time.Time // the engine's, when the transaction began; zero: it has none
	now     time.Time // the one reading of the clock; zero until asked for
	base    int64     // the last pos that was committed when the transaction began
	tail    int64     // the last pos
	tailAt  int64     // its at
	lists   []*pending
	values  []any // of the row that is being inserted
	spare   []any // of a list that has been sent, for the next
	owns    bool  // the running function has buffered something
	ownSent bool  // and some of it has been sent
	flushes int   // of everything
	parts   int   // of everything but events
	failed  error // a write of the running function, which may be half done: the function cannot succeed
	broken  error // the transaction cannot go on
}

// pending is the rows that wait to be sent as one list.
type pending struct {
	list    *List
	ordered bool
	args    []any
	rows    int
}

func newTx(s *Store, on *session, at standing) *Tx {
	return &Tx{store: s, session: on, base: at.tail, tail: at.tail, tailAt: at.tailAt, clock: at.now}
}

// readTail returns the pos and the at of the last event.
func (s *session) readTail() (pos, at int64, err error) {
	rows, err := s.query(context.Background(), `SELECT pos, at FROM events ORDER BY pos DESC LIMIT 1`)
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	if rows.Next() {
		err = rows.Scan(&pos, &at)
	}
	if err == nil {
		err = rows.Err()
	}
	return pos, at, err
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
		tx.now = FromMicros(tx.now.UnixMicro())
	}
	return tx.now
}

// At returns what an event appended now is stamped with: Now, raised to the at of the event before it (I7).
func (tx *Tx) At() time.Time { return FromMicros(max(tx.Now().UnixMicro(), tx.tailAt)) }

// Tail returns the pos of the last event; 0 in an empty ledger.
func (tx *Tx) Tail(context.Context) (int64, error) {
	if !tx.readOnly {
		return tx.tail, nil
	}
	pos, _, err := tx.session.readTail()
	return pos, err
}

// Waited returns how long the running function waited for the write lock.
func (tx *Tx) Waited() time.Duration { return tx.waited }

// Put adds a row to l. ErrConflict when l is exact, the transaction is careful, and the row was not there.
func (tx *Tx) Put(l *List, args ...any) error {
	if tx.broken != nil {
		return tx.broken
	}
	if tx.readOnly {
		return fmt.Errorf("ledger: write in a read transaction")
	}
	if tx.careful {
		err := tx.noted(tx.session.explained(tx.session.putOne(l, args)))
		if err != nil && !errors.Is(err, ErrConflict) {
			tx.failed = err
		}
		return err
	}
	tx.owns = true
	for _, p := range tx.lists {
		if p.list == l {
			p.add(args)
			if p.rows == streamedRows && tx.session.streams {
				return tx.stream()
			}
			return nil
		}
	}
	tx.wait(&pending{list: l}, args)
	return nil
}

// streamedRows is how many rows of a list are sent without waiting for more, where the database works by itself.
const streamedRows = 64

// stream sends what is buffered, and waits for nothing.
func (tx *Tx) stream() error {
	if err := tx.flush(); err != nil {
		return err
	}
	if err := tx.session.explained(tx.session.push()); err != nil {
		tx.broken = err
	}
	return tx.broken
}

func (p *pending) add(args []any) {
	p.args = append(p.args, args...)
	p.rows++
}

func (tx *Tx) wait(p *pending, first []any) {
	if p.ordered && cap(tx.spare) >= 8*len(first) {
		p.args, tx.spare = tx.spare, nil
	} else {
		p.args = make([]any, 0, 8*len(first))
	}
	p.add(first)
	tx.lists = append(tx.lists, p)
}

// Insert is Put for a new row of a table: a value for each of its columns, nil for null.
func (tx *Tx) Insert(in *Inserts, values ...any) error {
	var columns uint64
	args := tx.values[:0]
	for i, v := range values {
		if v != nil {
			columns |= 1 << i
			args = append(args, v)
		}
	}
	tx.values = args
	l := in.list(columns)
	if !in.ordered || tx.broken != nil || tx.readOnly || tx.careful {
		return tx.Put(l, args...)
	}
	tx.owns = true
	for i := len(tx.lists) - 1; i >= 0; i-- {
		if p := tx.lists[i]; p.ordered { // the last of them; there is one table whose order counts
			if p.list == l {
				p.add(args)
				return nil
			}
			break
		}
	}
	tx.wait(&pending{list: l, ordered: true}, args)
	return nil
}

// Query runs a SELECT after everything that was written before it. Reading outside the loop over the rows is
// allowed; the caller closes them.
func (tx *Tx) Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	return tx.queryAfter(ctx, tx.flush, query, args)
}

// QueryState is Query for a SELECT that does not read events: those that wait may wait on, and go together with the
// next ones.
func (tx *Tx) QueryState(ctx context.Context, query string, args ...any) (*Rows, error) {
	return tx.queryAfter(ctx, tx.flushState, query, args)
}

// PendingQuery is a query that has been sent and whose rows are read later.
type PendingQuery struct {
	tx    *Tx
	query string
	args  []any
	read  func() (driver.Rows, []driver.Value, error) // nil: it has not been sent
}

// Prefetch sends a query like QueryState does and does not wait for its rows, so that a database server finds them
// concurrently. Nothing that changes them may be written before Rows is called.
func (tx *Tx) Prefetch(query string, args ...any) (*PendingQuery, error) {
	p := &PendingQuery{tx: tx, query: query, args: args}
	err := tx.flushState()
	if err == nil {
		p.read, err = tx.session.foresee(query, args)
		err = tx.noted(tx.session.explained(err))
	}
	return p, err
}

// Rows waits for the rows; the caller closes them.
func (p *PendingQuery) Rows(ctx context.Context) (*Rows, error) {
	if p.read == nil {
		return p.tx.QueryState(ctx, p.query, p.args...)
	}
	rows, row, err := p.read()
	found, err := p.tx.session.rowsOf(context.Background(), rows, row, err)
	return found, p.tx.noted(err)
}

func (tx *Tx) queryAfter(ctx context.Context, flush func() error, query string, args []any) (*Rows, error) {
	if err := flush(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return tx.ask(ctx, query, args...)
}

// ask is Query past the buffer.
func (tx *Tx) ask(ctx context.Context, query string, args ...any) (*Rows, error) {
	if !tx.readOnly {
		ctx = context.Background() // a statement of the writer is short, and is not interrupted
	}
	rows, err := tx.session.query(ctx, query, args...)
	return rows, tx.noted(err)
}

// Exec runs a statement at once, after everything that was written before it, and returns the rows it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	if err := tx.flush(); err != nil {
		return 0, err
	}
	if !tx.careful {
		tx.owns, tx.ownSent = true, true
	}
	changed, err := tx.session.exec(query, args...)
	return changed, tx.noted(err)
}

// flush sends what is buffered. A failure breaks the transaction: in the fast way nobody knows whose row it was.
func (tx *Tx) flush() error {
	lists := tx.lists[:0]
	for _, p := range tx.lists {
		if err := tx.send(p); err != nil {
			return err
		}
		if !p.ordered {
			lists = append(lists, p)
		} else if cap(p.args) > cap(tx.spare) {
			tx.spare = p.args
		}
	}
	clear(tx.lists[len(lists):])
	tx.lists = lists
	tx.ownSent = tx.ownSent || tx.owns
	tx.flushes++
	return tx.broken
}

// flushState is flush of everything but events.
func (tx *Tx) flushState() error {
	sent := false
	for _, p := range tx.lists {
		if p.ordered || p.rows == 0 {
			continue
		}
		if err := tx.send(p); err != nil {
			return err
		}
		sent = true
	}
	if sent {
		tx.ownSent = tx.ownSent || tx.owns
		tx.parts++
	}
	return tx.broken
}

// send sends the rows of one list.
func (tx *Tx) send(p *pending) error {
	if tx.broken != nil || p.rows == 0 {
		return tx.broken
	}
	if err := tx.session.explained(tx.session.put(p.list, p.rows, p.args)); err != nil {
		if tx.broken = tx.session.broken; tx.broken == nil {
			tx.broken = errRedo
		}
		return tx.broken
	}
	p.rows = 0
	clear(p.args)
	p.args = p.args[:0]
	failpoint.Hit("list")
	return nil
}

// noted notes an error after which the transaction cannot go on: of rows that had been sent before, say.
func (tx *Tx) noted(err error) error {
	if err != nil && !tx.readOnly && (errors.Is(err, errRedo) || !tx.careful && tx.session.aborted()) {
		tx.broken = fmt.Errorf("%w: %w", errRedo, err)
	}
	return err
}

// mark is where a function's part of the buffer begins.
type mark struct {
	rows         []int
	flushes      int
	parts        int
	tail, tailAt int64
}

func (tx *Tx) mark() mark {
	m := mark{tail: tx.tail, tailAt: tx.tailAt, flushes: tx.flushes, parts: tx.parts, rows: make([]int, len(tx.lists))}
	for i, p := range tx.lists {
		m.rows[i] = p.rows
	}
	tx.owns, tx.ownSent = false, false
	return m
}

// cutBack removes what was buffered since m; false if some of it has been sent already.
func (tx *Tx) cutBack(m mark) bool {
	if tx.ownSent {
		return false
	}
	if !tx.owns {
		return true
	}
	tx.tail, tx.tailAt = m.tail, m.tailAt
	for i, p := range tx.lists {
		keep := 0 // a read has sent what was there before
		if i < len(m.rows) && m.flushes == tx.flushes && (p.ordered || m.parts == tx.parts) {
			keep = m.rows[i]
		}
		p.rows, p.args = keep, p.args[:keep*p.list.width]
	}
	return true
}
