package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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
	careful  bool // send each write at once and check it
	readOnly bool
	waited   time.Duration // of the function that runs now, until it had the write lock

	now     time.Time // the one reading of the clock; zero until asked for
	tail    int64     // the last pos
	tailAt  int64     // its at
	lists   []*pending
	values  []any // of the row that is being inserted
	owns    bool  // the running function has buffered something
	ownSent bool  // and some of it has been sent
	flushes int
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

// List is a statement that takes one row or many. Rows wait in a buffer per List and keep their order; lists are
// sent in the order in which they were first used. Make one with NewList and keep it: it is its own identity.
type List struct {
	before, row, after, one string

	width int
	exact bool
	texts [len(listSizes)]atomic.Pointer[string] // nil: not needed yet
}

// listSizes are the numbers of rows for which a List has a statement: each for the few that a handful of workers
// writes at a time. Beyond 64 rows a longer list gains nothing and costs memory.
var listSizes = [...]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 32, 40, 48, 56, 64}

// NewList returns a List whose statement is before, then "(?,?,…)" of width values per row, then after. one is the
// statement for a single row, where there is a cheaper form; "" where there is not. exact demands that each row
// of the list changes exactly one row of the table: a compare-and-swap that lost is a conflict.
func NewList(before string, width int, after, one string, exact bool) *List {
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", width), ",") + ")"
	return &List{before: before, row: row, after: after, one: one, width: width, exact: exact}
}

// text is the statement for the size'th of listSizes.
func (l *List) text(size int) string {
	if text := l.texts[size].Load(); text != nil {
		return *text
	}
	text := l.before + strings.TrimSuffix(strings.Repeat(l.row+",", listSizes[size]), ",") + l.after
	if size == 0 && l.one != "" {
		text = l.one
	}
	l.texts[size].Store(&text)
	return text
}

// Inserts is how rows are inserted into one table. A value that is nil costs as much as another on its way, so there
// is a List for each set of columns that are not null.
type Inserts struct {
	table   string
	columns []string
	ordered bool     // rows are sent in the order in which they come, whatever their columns
	lists   sync.Map // of *List by the bits of the columns
}

// NewInserts returns the Inserts of a table with up to 64 columns. Make it once and keep it.
func NewInserts(table string, columns ...string) *Inserts {
	return &Inserts{table: table, columns: columns}
}

func (in *Inserts) list(columns uint64) *List {
	if l, ok := in.lists.Load(columns); ok {
		return l.(*List)
	}
	var names []string
	for i, name := range in.columns {
		if columns&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	l, _ := in.lists.LoadOrStore(columns, NewList(`INSERT INTO `+in.table+` (`+strings.Join(names, ", ")+`) VALUES `, len(names), "", "", false))
	return l.(*List)
}

func newTx(s *Store, on *session, careful bool) *Tx {
	return &Tx{store: s, session: on, careful: careful}
}

// start learns where the ledger ends.
func (tx *Tx) start() error {
	var err error
	tx.tail, tx.tailAt, err = tx.readTail()
	return err
}

func (tx *Tx) readTail() (pos, at int64, err error) {
	rows, err := tx.session.query(context.Background(), `SELECT pos, at FROM events ORDER BY pos DESC LIMIT 1`)
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
		clock := time.Now
		if tx.store.Now != nil {
			clock = tx.store.Now
		}
		tx.now = FromMicros(clock().UnixMicro())
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
	pos, _, err := tx.readTail()
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
		err := tx.send(l, 0, args)
		if err != nil && !errors.Is(err, ErrConflict) {
			tx.failed = err
		}
		return err
	}
	tx.owns = true
	for _, p := range tx.lists {
		if p.list == l {
			p.add(args)
			return nil
		}
	}
	tx.wait(&pending{list: l}, args)
	return nil
}

func (p *pending) add(args []any) {
	p.args = append(p.args, args...)
	p.rows++
}

func (tx *Tx) wait(p *pending, first []any) {
	p.args = make([]any, 0, 8*len(first))
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
	if err := tx.flush(); err != nil {
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
	return tx.session.query(ctx, query, args...)
}

// Exec runs a statement at once, after everything that was written before it, and returns the rows it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	if err := tx.flush(); err != nil {
		return 0, err
	}
	if !tx.careful {
		tx.owns, tx.ownSent = true, true
	}
	result, err := tx.session.exec(query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// flush sends what is buffered. A failure breaks the transaction: in the fast way nobody knows whose row it was.
func (tx *Tx) flush() error {
	if tx.broken != nil {
		return tx.broken
	}
	lists := tx.lists[:0]
	for _, p := range tx.lists {
		for args := p.args; p.rows > 0; {
			size := len(listSizes) - 1
			for listSizes[size] > p.rows {
				size--
			}
			n := p.list.width * listSizes[size]
			if err := tx.send(p.list, size, args[:n]); err != nil {
				if tx.broken = tx.session.broken; tx.broken == nil {
					tx.broken = errRedo
				}
				return tx.broken
			}
			args, p.rows = args[n:], p.rows-listSizes[size]
		}
		clear(p.args)
		p.args = p.args[:0]
		if !p.ordered {
			lists = append(lists, p)
		}
		failpoint.Hit("list")
	}
	clear(tx.lists[len(lists):])
	tx.lists = lists
	tx.ownSent = tx.ownSent || tx.owns
	tx.flushes++
	return nil
}

// send runs the statement of the size'th of listSizes.
func (tx *Tx) send(l *List, size int, args []any) error {
	result, err := tx.session.exec(l.text(size), args...)
	if err != nil {
		return err
	}
	if !l.exact {
		return nil
	}
	if n, err := result.RowsAffected(); err != nil || n != int64(listSizes[size]) {
		return fmt.Errorf("%w: %d of %d rows were as expected", ErrConflict, n, listSizes[size])
	}
	return nil
}

// mark is where a function's part of the buffer begins.
type mark struct {
	rows         []int
	flushes      int
	tail, tailAt int64
}

func (tx *Tx) mark() mark {
	m := mark{tail: tx.tail, tailAt: tx.tailAt, flushes: tx.flushes, rows: make([]int, len(tx.lists))}
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
		keep := 0 // a read has sent everything that was there before
		if i < len(m.rows) && m.flushes == tx.flushes {
			keep = m.rows[i]
		}
		p.rows, p.args = keep, p.args[:keep*p.list.width]
	}
	return true
}
