package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"jobledger/ledger/failpoint"
	"jobledger/ledger/internal/engine"
)

// connection is a connection to SQLite with its prepared statements. To compile a statement costs more than a
// small transaction, so each text is compiled once per connection, and once more for each use at the same
// time, because a statement has one cursor.
//
// Statements go straight to the driver: package database/sql converts every value in both directions, which
// costs as much as SQLite itself needs for a small row. It opens and keeps the connection, and serves rare
// statements.
type connection struct {
	db     *sql.DB // holds this one connection
	conn   *sql.Conn
	driver driver.ConnPrepareContext // the connection within conn
	idle   map[string][]*statement
	args   []driver.NamedValue // of the statement that is being started

	bulkTexts map[bulkKey]string
	bound     []any // what bindOnce returned
}

// statement is a prepared statement, and the rows of the query that it runs.
type statement struct {
	preparedStatement
	owner *connection
	query string
	row   []driver.Value // what a row is read into
	rows  driver.Rows
}

// preparedStatement is what the driver has to offer.
type preparedStatement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// openRows are the rows of a statement; Close puts the statement back into the cache.
type openRows struct{ *statement }

func (r openRows) Columns() []string              { return r.rows.Columns() }
func (r openRows) Next(dest []driver.Value) error { return r.rows.Next(dest) }

func (r openRows) Close() error {
	err := r.rows.Close()
	r.rows = nil
	r.owner.give(r.statement)
	return err
}

func connect(ctx context.Context, url string) (*engine.Session, error) {
	c, err := open(ctx, url)
	if err != nil {
		return nil, err
	}
	return &engine.Session{Connection: c}, nil
}

func open(ctx context.Context, url string) (*connection, error) {
	db, err := sql.Open("sqlite", url)
	if err != nil {
		return nil, err
	}
	c := &connection{db: db, idle: make(map[string][]*statement), bulkTexts: make(map[bulkKey]string)}
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

// Close implements engine.Connection.
func (c *connection) Close() error {
	c.dropStatements()
	_ = c.conn.Close()
	return c.db.Close()
}

func (c *connection) dropStatements() {
	for _, stmts := range c.idle {
		for _, stmt := range stmts {
			_ = stmt.Close()
		}
	}
	clear(c.idle)
}

func (c *connection) take(query string) (*statement, error) {
	failpoint.Hit("statement")
	if stmts := c.idle[query]; len(stmts) > 0 {
		stmt := stmts[len(stmts)-1]
		c.idle[query] = stmts[:len(stmts)-1]
		return stmt, nil
	}
	if len(c.idle) > engine.MaxStatements {
		c.dropStatements()
	}
	prepared, err := c.driver.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	return &statement{preparedStatement: prepared.(preparedStatement), owner: c, query: query}, nil
}

func (c *connection) give(stmt *statement) {
	c.idle[stmt.query] = append(c.idle[stmt.query], stmt)
}

// bind converts args to what a driver takes. The result is valid until the statement has been started.
func (c *connection) bind(args []any) ([]driver.NamedValue, error) {
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

func (c *connection) exec(query string, args []any) (driver.Result, error) {
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

// Run implements engine.Connection.
func (c *connection) Run(query string, args []any) (changed int64, err error) {
	result, err := c.exec(query, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// InsertRow implements engine.Connection.
func (c *connection) InsertRow(query string, args []any) (n int64, err error) {
	result, err := c.exec(query, args)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// Select implements engine.Connection.
func (c *connection) Select(
	ctx context.Context, query string, args []any,
) (driver.Rows, []driver.Value, error) {
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

// Prefetch implements engine.Connection. In a file there is no round trip to hide.
func (c *connection) Prefetch(string, []any) (engine.ReadRows, error) { return nil, nil }

// Explain implements engine.Connection.
func (c *connection) Explain(err error) (explained error, lost bool) {
	err = explain(err)
	switch code(err) & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_BUSY,
		sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_CORRUPT:
		lost = true
	}
	return err, lost
}

// Aborted implements engine.Connection: after an error SQLite rolls back one statement only.
func (c *connection) Aborted() bool { return false }

// WithSecureDelete bypasses the statement cache, because the pragma takes effect when it is compiled. The
// pragma is off otherwise: nothing else is deleted for secrecy.
func (c *connection) WithSecureDelete(fn func() error) error {
	if _, err := c.conn.ExecContext(context.Background(), `PRAGMA secure_delete = 1`); err != nil {
		return err
	}
	err := fn()
	if _, offErr := c.conn.ExecContext(context.Background(), `PRAGMA secure_delete = 0`); err == nil {
		err = offErr
	}
	return err
}
