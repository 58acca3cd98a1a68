package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"

	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/ledger/failpoint"
)

// session is one connection with its prepared statements. Compiling a statement costs more than a small
// transaction, so each text is compiled once per connection; once more for each that is open at the same time,
// because a statement has one cursor. A session is used by one goroutine at a time.
//
// Statements go to the driver itself: package database/sql converts every value on its way in and out, which costs
// as much as SQLite needs for a small row. It opens the connection and holds it, and serves what is rare.
type session struct {
	db         *sql.DB // holds this one connection
	conn       *sql.Conn
	driver     driver.ConnPrepareContext // the connection within conn
	idle       map[string][]*statement
	args       []driver.NamedValue // of the statement that is being started
	dictionary dictionary
	broken     error // why SQLite may have rolled the transaction back by itself
}

// statement is a prepared statement.
type statement struct {
	preparedStatement
	row []driver.Value // what a query's row is read into
}

// preparedStatement is what the driver has to offer.
type preparedStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// maxStatements bounds the cache: the texts of filters are many.
const maxStatements = 512

func connect(ctx context.Context, url string) (*session, error) {
	db, err := sql.Open("sqlite", url)
	if err != nil {
		return nil, err
	}
	s := &session{db: db, idle: make(map[string][]*statement)}
	if s.conn, err = db.Conn(ctx); err == nil {
		err = s.conn.Raw(func(c any) error {
			s.driver = c.(driver.ConnPrepareContext)
			return nil
		})
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

func (s *session) close() error {
	s.dropStatements()
	_ = s.conn.Close()
	return s.db.Close()
}

func (s *session) dropStatements() {
	for _, stmts := range s.idle {
		for _, stmt := range stmts {
			_ = stmt.Close()
		}
	}
	clear(s.idle)
}

func (s *session) take(query string) (*statement, error) {
	failpoint.Hit("statement")
	if stmts := s.idle[query]; len(stmts) > 0 {
		stmt := stmts[len(stmts)-1]
		s.idle[query] = stmts[:len(stmts)-1]
		return stmt, nil
	}
	if len(s.idle) > maxStatements {
		s.dropStatements()
	}
	prepared, err := s.driver.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	return &statement{preparedStatement: prepared.(preparedStatement)}, nil
}

func (s *session) give(query string, stmt *statement) { s.idle[query] = append(s.idle[query], stmt) }

// bind makes args what a driver takes. It is used up when the statement has been started.
func (s *session) bind(args []any) ([]driver.NamedValue, error) {
	s.args = s.args[:0]
	for i, arg := range args {
		switch v := arg.(type) {
		case nil, int64, string, []byte, float64, bool:
		case int:
			arg = int64(v)
		default:
			var err error
			if arg, err = driver.DefaultParameterConverter.ConvertValue(arg); err != nil {
				return nil, fmt.Errorf("argument %d: %w", i+1, err)
			}
		}
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return s.args, nil
}

// exec runs a statement to its end. A context that can be cancelled costs a goroutine per statement, so the
// caller checks it between statements instead.
func (s *session) exec(query string, args ...any) (driver.Result, error) {
	stmt, err := s.take(query)
	if err != nil {
		return nil, s.explain(err)
	}
	bound, err := s.bind(args)
	var result driver.Result
	if err == nil {
		result, err = stmt.ExecContext(context.Background(), bound)
	}
	s.give(query, stmt)
	return result, s.explain(err)
}

func (s *session) query(ctx context.Context, query string, args ...any) (*Rows, error) {
	stmt, err := s.take(query)
	if err != nil {
		return nil, s.explain(err)
	}
	bound, err := s.bind(args)
	var rows driver.Rows
	if err == nil {
		rows, err = stmt.QueryContext(ctx, bound)
	}
	if err != nil {
		s.give(query, stmt)
		return nil, s.explain(err)
	}
	if stmt.row == nil {
		stmt.row = make([]driver.Value, len(rows.Columns()))
	}
	return &Rows{ctx: ctx, rows: rows, row: stmt.row, session: s, query: query, stmt: stmt}, nil
}

// explain is explain, and notes an error after which the transaction may be gone: what follows would be committed
// statement by statement (https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction).
func (s *session) explain(err error) error {
	err = explain(err)
	switch code(err) & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CORRUPT:
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
	query   string
	stmt    *statement // nil: closed
}

// Columns returns the names of the columns.
func (r *Rows) Columns() []string { return r.rows.Columns() }

// Next goes to the next row, and reports whether there is one.
func (r *Rows) Next() bool {
	if r.stmt == nil || r.err != nil {
		return false
	}
	if r.err = r.ctx.Err(); r.err == nil {
		r.err = r.rows.Next(r.row)
	}
	return r.err == nil
}

// Close ends the query and gives its statement back.
func (r *Rows) Close() error {
	if r.stmt == nil {
		return nil
	}
	err := r.rows.Close()
	clear(r.row)
	r.session.give(r.query, r.stmt)
	r.stmt = nil
	return r.session.explain(err)
}

// Err returns the error that ended the rows early, if any.
func (r *Rows) Err() error {
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.session.explain(r.err)
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

// scan copies value, as the SQLite driver gives it, into dest.
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
