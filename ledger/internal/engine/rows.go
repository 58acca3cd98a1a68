package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Rows are the rows of a query. The caller closes them, even after an error.
type Rows struct {
	ctx     context.Context
	rows    driver.Rows
	row     []driver.Value
	err     error
	session *Session
	closed  bool
	ended   error // why they were closed other than by the caller

	next, prev *Rows // of the session's that are open
}

// Values returns the current row. The values are int64, string, []byte (nil for an empty one) and nil. The
// caller may keep them, but not the slice.
func (r *Rows) Values() []driver.Value { return r.row }

// Next goes to the next row and reports whether there is one.
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
	r.session.forget(r)
	clear(r.row)
	return r.session.Check(r.rows.Close())
}

// Err returns the error that ended the rows early, if any.
func (r *Rows) Err() error {
	if r.ended != nil {
		return r.ended
	}
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.session.Check(r.err)
}

// Scan copies the row into dest, which has a pointer for each column: to int64, int, string, bool, []byte or
// any, to a type made of int64 or string, or to a sql.Scanner. Only []byte, any, a pointer and a sql.Scanner
// take a NULL. The bytes of a sql.RawBytes are valid until the next call of Next.
func (r *Rows) Scan(dest ...any) error {
	if r.ended != nil {
		return r.ended
	}
	if len(dest) != len(r.row) {
		return fmt.Errorf("ledger: %d destinations for a row of %d columns", len(dest), len(r.row))
	}
	for i, value := range r.row {
		if err := scan(dest[i], value); err != nil {
			return fmt.Errorf("%w: column %s: %w", ErrDamaged, r.rows.Columns()[i], err)
		}
	}
	return nil
}

// scan copies value into dest.
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
		case []byte: // a copy that the driver made
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

// scanKind is scan for types made of int64, string or bool, and for pointers to them; a NULL makes the
// pointer nil.
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
	return fmt.Errorf("%T %.40v instead of a %s", value, value, dest.Type())
}
