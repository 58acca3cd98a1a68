package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/ledger/failpoint"
)

// sqliteConnection is a connection to SQLite with its prepared statements. Compiling a statement costs more than a small
// transaction, so each text is compiled once per connection; once more for each that is open at the same time,
// because a statement has one cursor.
//
// Statements go to the driver itself: package database/sql converts every value on its way in and out, which costs
// as much as SQLite needs for a small row. It opens the connection and holds it, and serves what is rare.
type sqliteConnection struct {
	db     *sql.DB // holds this one connection
	conn   *sql.Conn
	driver driver.ConnPrepareContext // the connection within conn
	idle   map[string][]*statement
	args   []driver.NamedValue // of the statement that is being started
}

// statement is a prepared statement, and the rows of the query that it runs.
type statement struct {
	preparedStatement
	connection *sqliteConnection
	query      string
	row        []driver.Value // what a row is read into
	rows       driver.Rows
}

// preparedStatement is what the driver has to offer.
type preparedStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// openRows are the rows of a statement; to close them gives that back.
type openRows struct{ *statement }

func (r openRows) Columns() []string              { return r.rows.Columns() }
func (r openRows) Next(dest []driver.Value) error { return r.rows.Next(dest) }

func (r openRows) Close() error {
	err := r.rows.Close()
	r.rows = nil
	r.connection.give(r.statement)
	return err
}

// maxStatements bounds the cache: the texts of filters are many.
const maxStatements = 512

func connect(ctx context.Context, url string) (*session, error) {
	c, err := connectSQLite(ctx, url)
	if err != nil {
		return nil, err
	}
	return &session{connection: c}, nil
}

func connectSQLite(ctx context.Context, url string) (*sqliteConnection, error) {
	db, err := sql.Open("sqlite", url)
	if err != nil {
		return nil, err
	}
	c := &sqliteConnection{db: db, idle: make(map[string][]*statement)}
	if c.conn, err = db.Conn(ctx); err == nil {
		err = c.conn.Raw(func(raw any) error {
			c.driver = raw.(driver.ConnPrepareContext)
			return nil
		})
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return c, nil
}

func (c *sqliteConnection) close() error {
	c.dropStatements()
	_ = c.conn.Close()
	return c.db.Close()
}

func (c *sqliteConnection) dropStatements() {
	for _, stmts := range c.idle {
		for _, stmt := range stmts {
			_ = stmt.Close()
		}
	}
	clear(c.idle)
}

func (c *sqliteConnection) take(query string) (*statement, error) {
	failpoint.Hit("statement")
	if stmts := c.idle[query]; len(stmts) > 0 {
		stmt := stmts[len(stmts)-1]
		c.idle[query] = stmts[:len(stmts)-1]
		return stmt, nil
	}
	if len(c.idle) > maxStatements {
		c.dropStatements()
	}
	prepared, err := c.driver.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	return &statement{preparedStatement: prepared.(preparedStatement), connection: c, query: query}, nil
}

func (c *sqliteConnection) give(stmt *statement) {
	c.idle[stmt.query] = append(c.idle[stmt.query], stmt)
}

// bind makes args what a driver takes. It is used up when the statement has been started.
func (c *sqliteConnection) bind(args []any) ([]driver.NamedValue, error) {
	c.args = c.args[:0]
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
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return c.args, nil
}

func (c *sqliteConnection) exec(query string, args []any) (driver.Result, error) {
	stmt, err := c.take(query)
	if err != nil {
		return nil, err
	}
	bound, err := c.bind(args)
	var result driver.Result
	if err == nil {
		result, err = stmt.ExecContext(context.Background(), bound)
	}
	c.give(stmt)
	return result, err
}

func (c *sqliteConnection) run(query string, args []any) (changed int64, err error) {
	result, err := c.exec(query, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c *sqliteConnection) insert(query string, args []any) (n int64, err error) {
	result, err := c.exec(query, args)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (c *sqliteConnection) ask(ctx context.Context, query string, args []any) (driver.Rows, []driver.Value, error) {
	stmt, err := c.take(query)
	if err != nil {
		return nil, nil, err
	}
	bound, err := c.bind(args)
	if err == nil {
		stmt.rows, err = stmt.QueryContext(ctx, bound)
	}
	if err != nil {
		c.give(stmt)
		return nil, nil, err
	}
	if stmt.row == nil {
		stmt.row = make([]driver.Value, len(stmt.rows.Columns()))
	}
	return openRows{stmt}, stmt.row, nil
}

func (c *sqliteConnection) foresee(string, []any) (func() (driver.Rows, []driver.Value, error), error) {
	return nil, nil
}

// put sends statements of the sizes that there are.
func (c *sqliteConnection) put(l *List, rows int, args []any) error {
	for rows > 0 {
		size := len(listSizes) - 1
		for listSizes[size] > rows {
			size--
		}
		n := l.width * listSizes[size]
		changed, err := c.run(l.text(size), args[:n])
		if err != nil {
			return err
		}
		if l.exact && changed != int64(listSizes[size]) {
			return fmt.Errorf("%w: %d of %d rows were as expected", ErrConflict, changed, listSizes[size])
		}
		args, rows = args[n:], rows-listSizes[size]
	}
	return nil
}

func (c *sqliteConnection) push() error { return nil }

func (c *sqliteConnection) putOne(l *List, args []any) error { return c.put(l, 1, args) }

func (c *sqliteConnection) explain(err error) (explained error, lost bool) {
	err = explain(err)
	switch code(err) & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CORRUPT:
		lost = true
	}
	return err, lost
}

func (c *sqliteConnection) aborted() bool { return false }

// secretly goes past the cache of statements: the pragma takes effect when it is compiled. It stays off otherwise,
// because nothing else is ever deleted for secrecy.
func (c *sqliteConnection) secretly(fn func() error) error {
	if _, err := c.conn.ExecContext(context.Background(), `PRAGMA secure_delete = 1`); err != nil {
		return err
	}
	err := fn()
	if _, offErr := c.conn.ExecContext(context.Background(), `PRAGMA secure_delete = 0`); err == nil {
		err = offErr
	}
	return err
}
