package engine

import (
	"context"
	"database/sql/driver"
	"time"
)

// MaxStatements bounds the prepared statements of a connection: filters make many different texts.
const MaxStatements = 512

// Session is one connection and the state of the transaction on it. One goroutine uses it at a time.
type Session struct {
	Connection
	Pipelined bool          // pushed statements run while the client goes on
	RoundTrip time.Duration // how long one took as the connection was opened; 0 without a server
	Lost      error         // after which the database may have rolled the transaction back; nil: no such error

	open *Rows // the last one that was begun and is not closed
}

// Connection is what an engine implements for its connections. Its methods return the errors of the driver;
// the methods of Session translate them.
type Connection interface {
	// Run runs a statement and returns the number of rows that it changed.
	Run(query string, args []any) (changed int64, err error)
	// InsertRow runs an INSERT of one row and returns the number n that the database gave it.
	InsertRow(query string, args []any) (n int64, err error)
	// Select runs a query. Other statements may run before its rows are closed. The rows are read into row.
	Select(ctx context.Context, query string, args []any) (rows driver.Rows, row []driver.Value, err error)
	// Prefetch sends a query without waiting for it; read waits. A nil read means that the engine gains nothing
	// by it.
	Prefetch(query string, args []any) (read ReadRows, err error)
	// PutRows writes rows with a bulk statement. That a row was not as expected may come to light with a later
	// statement or with the commit; the error then wraps ErrRetry.
	PutRows(b *BulkStmt, rows int, args []any) error
	// Push has the rows that were put so far written soon.
	Push() error
	// PutRow writes one row at once. ErrConflict, when the row was not as expected; the transaction goes on
	// then.
	PutRow(b *BulkStmt, args []any) error
	// Explain wraps an error of the database in the sentinel that callers branch on. lost says that the
	// transaction may be gone.
	Explain(err error) (explained error, lost bool)
	// Aborted reports whether the transaction can only be rolled back, after an error.
	Aborted() bool
	// WithSecureDelete runs fn, which deletes rows, so that their space is overwritten where the database can do
	// that.
	WithSecureDelete(fn func() error) error
	// Close closes the connection.
	Close() error
}

// ReadRows waits for the rows of a query that was sent before, and returns them with the slice that they are
// read into.
type ReadRows func() (rows driver.Rows, row []driver.Value, err error)

// Exec runs a statement and returns the number of rows that it changed. It takes no context, because a
// context that can be cancelled costs a goroutine per statement; the caller checks it between statements.
func (s *Session) Exec(query string, args ...any) (changed int64, err error) {
	changed, err = s.Run(query, args)
	return changed, s.Check(err)
}

// Query runs a query; the caller closes the rows.
func (s *Session) Query(ctx context.Context, query string, args ...any) (*Rows, error) {
	rows, row, err := s.Select(ctx, query, args)
	return s.RowsOf(ctx, rows, row, err)
}

// RowsOf makes Rows of what Select or a ReadRows returned.
func (s *Session) RowsOf(
	ctx context.Context, rows driver.Rows, row []driver.Value, err error,
) (*Rows, error) {
	if err != nil {
		return nil, s.Check(err)
	}
	r := &Rows{ctx: ctx, rows: rows, row: row, session: s, prev: s.open}
	if s.open != nil {
		s.open.next = r
	}
	s.open = r
	return r, nil
}

// forget takes r out of the rows that are open.
func (s *Session) forget(r *Rows) {
	if r.prev != nil {
		r.prev.next = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		s.open = r.prev
	}
	r.next, r.prev = nil, nil
}

// CloseRows closes the rows that are open. They return the reason to callers that continue.
func (s *Session) CloseRows(why error) {
	for s.open != nil {
		r := s.open
		_ = r.Close()
		r.ended = why
	}
}

// Check is Explain, and notes in Lost an error after which the transaction may be gone: the statements after
// it would be committed one by one
// (https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction).
func (s *Session) Check(err error) error {
	if err == nil {
		return nil
	}
	err, lost := s.Explain(err)
	if lost {
		s.Lost = err
	}
	return err
}

// First reads the first row of a query into dest, as Rows.Scan does; found is false if there is no row.
func (s *Session) First(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	rows, err := s.Query(ctx, query, args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if found = rows.Next(); found {
		err = rows.Scan(dest...)
	}
	if err == nil {
		err = rows.Err()
	}
	return found, err
}

// Int returns the integer that a query of one column returns; 0 if it returns no row.
func (s *Session) Int(ctx context.Context, query string, args ...any) (n int64, err error) {
	_, err = s.First(ctx, []any{&n}, query, args...)
	return n, err
}

// Tail returns the pos and the at of the last event.
func (s *Session) Tail() (pos, at int64, err error) {
	_, err = s.First(context.Background(), []any{&pos, &at},
		`SELECT pos, at FROM events ORDER BY pos DESC LIMIT 1`)
	return pos, at, err
}
