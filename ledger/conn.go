package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// session is one connection, and what has been learned on it of the names in the ledger. It is used by one goroutine at
// a time.
type session struct {
	connection
	dictionary dictionary
	streams    bool  // what has been pushed is carried out meanwhile
	broken     error // why the database may have rolled the transaction back by itself
}

// server is the connection of a session with PostgreSQL.
func (s *session) server() *server { return s.connection.(*server) }

// connection is a connection to the database that holds a ledger.
type connection interface {
	// run runs a statement to its end and returns how many rows it changed.
	run(query string, args []any) (changed int64, err error)
	// insert is run for an INSERT of one row, and returns the number n that the database gave to it.
	insert(query string, args []any) (n int64, err error)
	// ask runs a query. Other statements may follow before its rows are closed. row is what they are read into.
	ask(ctx context.Context, query string, args []any) (rows driver.Rows, row []driver.Value, err error)
	// foresee is an ask that is not waited for: read waits, when it is called. A nil one means that here nothing would be
	// gained by that.
	foresee(query string, args []any) (read func() (rows driver.Rows, row []driver.Value, err error), err error)
	// put writes rows of a list. That one was not as expected may be told by a later statement, or by the commit; the
	// error then wraps errRedo.
	put(l *List, rows int, args []any) error
	// push sees to it that what was put is carried out soon.
	push() error
	// putOne writes one row of a list at once; ErrConflict, after which others may follow, when it was not as expected.
	putOne(l *List, args []any) error
	// explain wraps an error of the database in the sentinel that callers branch on. lost says that the transaction may
	// be gone.
	explain(err error) (explained error, lost bool)
	// aborted reports whether nothing more can be done in the transaction, after an error.
	aborted() bool
	// secretly runs fn, which deletes rows, so that what they leave free is overwritten, where the database can.
	secretly(fn func() error) error
	close() error
}

// exec runs a statement to its end. A context that can be cancelled costs a goroutine per statement, so the
// caller checks it between statements instead.
func (s *session) exec(query string, args ...any) (changed int64, err error) {
	changed, err = s.run(query, args)
	return changed, s.explained(err)
}

func (s *session) query(ctx context.Context, query string, args ...any) (*Rows, error) {
	rows, row, err := s.ask(ctx, query, args)
	return s.rowsOf(ctx, rows, row, err)
}

func (s *session) rowsOf(ctx context.Context, rows driver.Rows, row []driver.Value, err error) (*Rows, error) {
	if err != nil {
		return nil, s.explained(err)
	}
	return &Rows{ctx: ctx, rows: rows, row: row, session: s}, nil
}

// explained is explain, and notes an error after which the transaction may be gone: what follows would be committed
// statement by statement (https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction).
func (s *session) explained(err error) error {
	if err == nil {
		return nil
	}
	err, lost := s.explain(err)
	if lost {
		s.broken = err
	}
	return err
}

// Rows are the rows of a query. Close them, also after an error.
type Rows struct {
	ctx     context.Context
	rows    driver.Rows
	row     []driver.Value
	err     error
	session *session
	closed  bool
}

// Columns returns the names of the columns.
func (r *Rows) Columns() []string { return r.rows.Columns() }

// Next goes to the next row, and reports whether there is one.
func (r *Rows) Next() bool {
	if r.closed || r.err != nil {
		return false
	}
	if r.err = r.ctx.Err(); r.err == nil {
		r.err = r.rows.Next(r.row)
	}
	return r.err == nil
}

// Close ends the query.
func (r *Rows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	clear(r.row)
	return r.session.explained(r.rows.Close())
}

// Err returns the error that ended the rows early, if any.
func (r *Rows) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.session.explained(r.err)
}

// Scan copies the row into dest, a pointer for each column: to int64, int, string, bool, []byte or any, to a type made
// of int64 or string, or to what implements sql.Scanner. A NULL goes into []byte, any and what implements sql.Scanner
// only. The bytes of a sql.RawBytes are good until the next call of Next.
func (r *Rows) Scan(dest ...any) error {
	if len(dest) != len(r.row) {
		return fmt.Errorf("ledger: %d places for a row of %d columns", len(dest), len(r.row))
	}
	for i, value := range r.row {
		if err := scan(dest[i], value); err != nil {
			return fmt.Errorf("%w: column %s: %w", ErrDamaged, r.rows.Columns()[i], err)
		}
	}
	return nil
}

// scan copies value, as the connection gives it, into dest.
func scan(dest any, value driver.Value) error {
	switch d := dest.(type) {
	case *int64:
		if n, ok := value.(int64); ok {
			*d = n
			return nil
		}
	case *string:
		if text, ok := value.(string); ok {
			*d = text
			return nil
		}
	case *[]byte:
		switch v := value.(type) {
		case nil:
			*d = nil
			return nil
		case []byte: // it is the driver's copy
			*d = v
			return nil
		case string:
			*d = []byte(v)
			return nil
		}
	case *sql.RawBytes:
		switch v := value.(type) {
		case nil:
			*d = nil
			return nil
		case []byte:
			*d = v
			return nil
		case string:
			*d = append((*d)[:0], v...)
			return nil
		}
	case *any:
		*d = value
		return nil
	case *sql.NullInt64:
		n, ok := value.(int64)
		*d = sql.NullInt64{Int64: n, Valid: ok}
		if ok || value == nil {
			return nil
		}
	case *sql.NullString:
		text, ok := value.(string)
		*d = sql.NullString{String: text, Valid: ok}
		if ok || value == nil {
			return nil
		}
	case sql.Scanner:
		return d.Scan(value)
	}
	return scanKind(reflect.ValueOf(dest).Elem(), value)
}

// scanKind is scan for what is made of int64, string or bool, and for a pointer to it, which a NULL makes nil.
func scanKind(dest reflect.Value, value driver.Value) error {
	if dest.Kind() == reflect.Pointer {
		if value == nil {
			dest.SetZero()
			return nil
		}
		dest.Set(reflect.New(dest.Type().Elem()))
		return scanKind(dest.Elem(), value)
	}
	switch v := value.(type) {
	case int64:
		switch {
		case dest.CanInt() && !dest.OverflowInt(v):
			dest.SetInt(v)
			return nil
		case dest.Kind() == reflect.Bool && v>>1 == 0:
			dest.SetBool(v == 1)
			return nil
		}
	case string:
		if dest.Kind() == reflect.String {
			dest.SetString(v)
			return nil
		}
	}
	return fmt.Errorf("%T %.40v where a %s should stand", value, value, dest.Type())
}
