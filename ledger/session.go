package ledger

import (
	"context"
	"database/sql"

	sqlite3 "modernc.org/sqlite/lib"
)

// session is one connection with its prepared statements. Compiling a statement costs more than a small
// transaction, so each text is compiled once per connection; once more for each that is open at the same time,
// because a statement has one cursor. A session is used by one goroutine at a time.
type session struct {
	db         *sql.DB // holds this one connection
	conn       *sql.Conn
	idle       map[string][]*sql.Stmt
	dictionary dictionary
	broken     error // why SQLite may have rolled the transaction back by itself
}

// maxStatements bounds the cache: the texts of filters are many.
const maxStatements = 256

func connect(ctx context.Context, url string) (*session, error) {
	db, err := sql.Open("sqlite", url)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return &session{db: db, conn: conn, idle: make(map[string][]*sql.Stmt)}, nil
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

func (s *session) take(query string) (*sql.Stmt, error) {
	if stmts := s.idle[query]; len(stmts) > 0 {
		stmt := stmts[len(stmts)-1]
		s.idle[query] = stmts[:len(stmts)-1]
		return stmt, nil
	}
	if len(s.idle) > maxStatements {
		s.dropStatements()
	}
	return s.conn.PrepareContext(context.Background(), query)
}

func (s *session) give(query string, stmt *sql.Stmt) { s.idle[query] = append(s.idle[query], stmt) }

// exec runs a statement to its end. A context that can be cancelled costs a goroutine per statement, so the
// caller checks it between statements instead.
func (s *session) exec(query string, args ...any) (sql.Result, error) {
	stmt, err := s.take(query)
	if err != nil {
		return nil, s.explain(err)
	}
	result, err := stmt.Exec(args...)
	s.give(query, stmt)
	return result, s.explain(err)
}

func (s *session) query(ctx context.Context, query string, args ...any) (*Rows, error) {
	stmt, err := s.take(query)
	if err != nil {
		return nil, s.explain(err)
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		s.give(query, stmt)
		return nil, s.explain(err)
	}
	return &Rows{Rows: rows, session: s, query: query, stmt: stmt}, nil
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
	*sql.Rows
	session *session
	query   string
	stmt    *sql.Stmt // nil: closed
}

// Close ends the query and gives its statement back.
func (r *Rows) Close() error {
	err := r.Rows.Close()
	if r.stmt != nil {
		r.session.give(r.query, r.stmt)
		r.stmt = nil
	}
	return r.session.explain(err)
}

// Err returns the error that ended the rows early, if any.
func (r *Rows) Err() error { return r.session.explain(r.Rows.Err()) }
