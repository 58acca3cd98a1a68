package ledger

import (
	"errors"
	"fmt"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
)

// buffer holds the rows that wait to be sent with one statement.
type buffer struct {
	stmt    *BulkStmt
	ordered bool
	args    []any
	rows    int
	before  int // of these, the rows of earlier functions
}

// Put writes a row with stmt. In the savepoint mode it returns ErrConflict when a compare-and-swap does not
// find the row as expected.
func (tx *Tx) Put(stmt *BulkStmt, args ...any) error {
	if err := tx.done(); err != nil {
		return err
	}
	if tx.err != nil {
		return tx.err
	}
	if tx.readOnly {
		return fmt.Errorf("ledger: write in a read transaction")
	}
	if tx.savepoints {
		err := tx.check(tx.session.Check(tx.session.PutRow(stmt, args)))
		if err != nil && !errors.Is(err, ErrConflict) {
			tx.fn.err = err
		}
		return err
	}
	for _, b := range tx.buffers {
		if b.stmt == stmt {
			b.add(args)
			if b.rows == pushedRows && tx.session.Pipelined {
				return tx.Flush()
			}
			return nil
		}
	}
	tx.addBuffer(&buffer{stmt: stmt}, args)
	return nil
}

// pushedRows is how many rows of a statement are sent without waiting for more, where the database works
// meanwhile.
const pushedRows = 64

// Flush sends the buffers without waiting for the outcome. A function that writes much without reading calls
// it now and then to bound its memory.
func (tx *Tx) Flush() error {
	if err := tx.flush(); err != nil {
		return err
	}
	if err := tx.session.Check(tx.session.Push()); err != nil {
		tx.err = err
	}
	return tx.err
}

func (b *buffer) add(args []any) {
	b.args = append(b.args, args...)
	b.rows++
}

func (tx *Tx) addBuffer(b *buffer, first []any) {
	if b.ordered && cap(tx.spare) >= 8*len(first) {
		b.args, tx.spare = tx.spare, nil
	} else {
		b.args = make([]any, 0, 8*len(first))
	}
	b.add(first)
	tx.buffers = append(tx.buffers, b)
}

// Insert is Put for a new row of a table: a value for each of its columns, nil for null.
func (tx *Tx) Insert(in *SparseInsert, values ...any) error {
	if err := tx.done(); err != nil {
		return err
	}
	stmt, args := in.Stmt(values, tx.values[:0])
	tx.values = args
	if !in.Ordered() || tx.err != nil || tx.readOnly || tx.savepoints {
		return tx.Put(stmt, args...)
	}
	for i := len(tx.buffers) - 1; i >= 0; i-- {
		if b := tx.buffers[i]; b.ordered { // the last one; the order counts in one table only
			if b.stmt == stmt {
				b.add(args)
				return nil
			}
			break
		}
	}
	tx.addBuffer(&buffer{stmt: stmt, ordered: true}, args)
	return nil
}

// flush sends the buffers. A failure ends the transaction: it does not say whose row it was.
func (tx *Tx) flush() error {
	if err := tx.done(); err != nil {
		return err
	}
	buffers := tx.buffers[:0]
	for _, b := range tx.buffers {
		if err := tx.send(b); err != nil {
			return err
		}
		if !b.ordered {
			buffers = append(buffers, b)
		} else if cap(b.args) > cap(tx.spare) {
			tx.spare = b.args
		}
	}
	clear(tx.buffers[len(buffers):])
	tx.buffers = buffers
	return tx.err
}

// flushState is flush without the events.
func (tx *Tx) flushState() error {
	if err := tx.done(); err != nil {
		return err
	}
	for _, b := range tx.buffers {
		if !b.ordered && tx.send(b) != nil {
			break
		}
	}
	return tx.err
}

// send sends the rows of one buffer.
func (tx *Tx) send(b *buffer) error {
	if tx.err != nil || b.rows == 0 {
		return tx.err
	}
	if err := tx.session.Check(tx.session.PutRows(b.stmt, b.rows, b.args)); err != nil {
		if tx.err = tx.session.Lost; tx.err == nil {
			tx.err = engine.ErrRetry
		}
		return tx.err
	}
	if b.rows > b.before {
		tx.fn.sent = true
	}
	b.rows, b.before = 0, 0
	clear(b.args)
	b.args = b.args[:0]
	failpoint.Hit("list")
	return nil
}
