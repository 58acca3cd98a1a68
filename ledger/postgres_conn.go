package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// server is a connection to PostgreSQL. One that writes keeps statements under way: they are sent without waiting for
// those before them, and what became of them is read when something depends on it. So the server carries out what has
// been decided while the next is, and a round trip is paid for only where a query is.
type server struct {
	conn       *pgx.Conn
	writes     bool
	pipe       *pgconn.Pipeline // that statements under way are in; nil: there are none
	owed       int              // of these, how many nobody has asked about
	unsent     bool             // some wait to be sent
	open       *serverRows      // whose rows still come from the connection; nil: none
	foreseen   *foreseen        // a query under way; nil: none, or its rows have been read
	texts      map[string]string
	statements map[string]*pgconn.StatementDescription // by their texts in PostgreSQL's words
	made       int                                     // statements
	builder    pgx.ExtendedQueryBuilder
}

// text is query in PostgreSQL's words.
func (c *server) text(query string) string {
	if text, ok := c.texts[query]; ok {
		return text
	}
	if c.texts == nil || len(c.texts) > maxStatements {
		c.texts = make(map[string]string)
	}
	text := inPostgres(query)
	c.texts[query] = text
	return text
}

// send sends a statement, without waiting for anything.
func (c *server) send(text string, args []any) error {
	if err := c.drain(); err != nil {
		return err
	}
	statement, err := c.statement(text)
	if err != nil {
		return err
	}
	if err := c.builder.Build(c.conn.TypeMap(), statement, args); err != nil {
		return err
	}
	if c.pipe == nil {
		c.pipe = c.conn.PgConn().StartPipeline(context.Background())
	}
	c.pipe.SendQueryPrepared(statement.Name, c.builder.ParamValues, c.builder.ParamFormats, c.builder.ResultFormats)
	c.owed++
	c.unsent = true
	return nil
}

// statement returns one that the server has compiled.
func (c *server) statement(text string) (*pgconn.StatementDescription, error) {
	if statement, ok := c.statements[text]; ok {
		return statement, nil
	}
	return c.prepare(text)
}

// prepare has the server compile a statement, which takes a connection with nothing under way.
func (c *server) prepare(text string) (*pgconn.StatementDescription, error) {
	if err := c.settle(); err != nil {
		return nil, err
	}
	if len(c.statements) > maxStatements {
		if err := c.conn.DeallocateAll(context.Background()); err != nil {
			return nil, err
		}
		clear(c.statements)
	}
	statement, err := c.conn.PgConn().Prepare(context.Background(), fmt.Sprintf("s%d", c.made), text, nil)
	if err != nil {
		return nil, err
	}
	if c.made++; c.statements == nil {
		c.statements = make(map[string]*pgconn.StatementDescription)
	}
	c.statements[text] = statement
	return statement, nil
}

// maxUnderWay bounds what is kept in mind of statements under way. They have up to streamedRows rows each.
const maxUnderWay = 256

// push sends what waits to be sent. Each time the server is told that an answer is due: only then does it notice that a
// client is silent, and throw out one that holds a lock.
func (c *server) push() error {
	if !c.unsent {
		return nil
	}
	c.unsent = false
	if err := c.pipe.Sync(); err != nil {
		return c.fail(err)
	}
	return c.await(maxUnderWay)
}

// await waits until nobody has asked about no more than so many.
func (c *server) await(left int) error {
	for ; c.owed > left; c.owed-- {
		if err := c.skip(); err != nil {
			return err
		}
	}
	return nil
}

// reach waits for all that was sent before the last statement, or before so many behind it, whose results are next then. An
// error of one before wraps errRedo.
func (c *server) reach(behind int) error {
	err := c.push()
	if err == nil {
		err = c.await(1 + behind)
	}
	if err == nil {
		c.owed = behind
	}
	return err
}

// skip looks at the next results only for their error, but keeps the rows of the query that was foreseen.
func (c *server) skip() (err error) {
	if f := c.foreseen; f != nil && f.before == 0 {
		if err = f.begin(); err == nil {
			err = c.drain()
		}
	} else {
		if f != nil {
			f.before--
		}
		_, err = c.end()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRedo, err)
	}
	return nil
}

// end takes the next results to their end.
func (c *server) end() (tag pgconn.CommandTag, err error) {
	r, err := c.begin()
	if err != nil {
		return tag, err
	}
	if tag, err = r.Close(); err != nil {
		err = c.fail(err)
	}
	return tag, err
}

// begin comes to the next results.
func (c *server) begin() (*pgconn.ResultReader, error) {
	r, err := c.next()
	if err != nil {
		return nil, c.fail(err)
	}
	return r, nil
}

func (c *server) next() (*pgconn.ResultReader, error) {
	for {
		results, err := c.pipe.GetResults()
		if err != nil {
			return nil, err
		}
		switch r := results.(type) {
		case *pgconn.ResultReader:
			return r, nil
		case *pgconn.PipelineSync:
		default:
			return nil, fmt.Errorf("ledger: the server answered %T", results)
		}
	}
}

// fail ends what is under way, which the server passes over after an error, and returns that. A connection that has
// broken is being closed by pgx already, which nobody must get in the way of.
func (c *server) fail(err error) error {
	if c.pipe != nil && !c.conn.IsClosed() {
		_ = c.pipe.Sync()
		_ = c.pipe.Close()
	}
	c.pipe, c.owed, c.unsent, c.foreseen = nil, 0, false, nil
	return err
}

// settle waits until nothing is under way.
func (c *server) settle() error {
	if c.pipe == nil {
		return nil
	}
	if err := c.push(); err != nil {
		return fmt.Errorf("%w: %w", errRedo, err)
	}
	if err := c.await(0); err != nil {
		return err
	}
	err := c.pipe.Close()
	c.pipe = nil
	if err != nil {
		return fmt.Errorf("%w: %w", errRedo, err)
	}
	return nil
}

func (c *server) run(query string, args []any) (changed int64, err error) {
	tag, err := c.finish(c.text(query), args)
	return tag.RowsAffected(), err
}

// finish sends a statement and waits for its end.
func (c *server) finish(text string, args []any) (tag pgconn.CommandTag, err error) {
	if !c.writes {
		if err := c.drain(); err != nil {
			return tag, err
		}
		return c.conn.Exec(context.Background(), text, args...)
	}
	if err := c.send(text, args); err != nil {
		return tag, err
	}
	if err := c.reach(0); err != nil {
		return tag, err
	}
	return c.end()
}

func (c *server) insert(query string, args []any) (n int64, err error) {
	rows, _, err := c.ask(context.Background(), query+` RETURNING n`, args)
	if err != nil {
		return 0, err
	}
	row := make([]driver.Value, 1)
	if err = rows.Next(row); err == nil {
		n, _ = row[0].(int64)
	}
	if closeErr := rows.Close(); err == nil {
		err = closeErr
	}
	return n, err
}

func (c *server) ask(ctx context.Context, query string, args []any) (driver.Rows, []driver.Value, error) {
	rows, err := c.query(ctx, query, args)
	if err != nil {
		return nil, nil, err
	}
	r, err := c.rowsOf(rows)
	if err != nil {
		return nil, nil, err
	}
	return r, make([]driver.Value, len(r.fields())), nil
}

func (c *server) query(ctx context.Context, query string, args []any) (rawRows, error) {
	if !c.writes {
		if err := c.drain(); err != nil {
			return nil, err
		}
		return c.conn.Query(ctx, c.text(query), args...)
	}
	if err := c.send(c.text(query), args); err != nil {
		return nil, err
	}
	if err := c.reach(0); err != nil {
		return nil, err
	}
	results, err := c.begin()
	if err != nil {
		return nil, err
	}
	return &pipedRows{ResultReader: results, connection: c}, nil
}

// drain reads what is left of the open rows, so that another statement can be sent.
func (c *server) drain() error {
	if c.open == nil {
		return nil
	}
	r := c.open
	r.Columns() // which the next statement's take the place of
	for r.more {
		row := make([]driver.Value, len(r.fields()))
		if r.err = r.take(row); r.err != nil {
			break
		}
		r.ahead = append(r.ahead, row)
	}
	return r.end()
}

func (c *server) put(l *List, rows int, args []any) error {
	text, bound := l.inPostgres(rows, args, false)
	return c.send(text, bound)
}

func (c *server) putOne(l *List, args []any) error {
	text, bound := l.inPostgres(1, args, true)
	tag, err := c.finish(text, bound)
	if err == nil && l.exact && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%w: the row was not as expected", ErrConflict)
	}
	return err
}

// commit commits, and waits for all that is under way by then. What follows is sent right behind, and is a transaction of
// its own that nobody waits for.
func (c *server) commit(following string, args ...any) error {
	tag, err := c.sendCommit(following, args)
	if err == nil && tag.String() != "COMMIT" {
		err = fmt.Errorf("%w: the server answered %s", errRedo, tag)
	}
	if err == nil {
		return nil
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	err, _ = c.explain(err)
	if ok && refused.Severity == "ERROR" { // the server lives, and has not committed
		return fmt.Errorf("%w: %w", errRedo, err)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, withoutRedo{err})
}

func (c *server) rollback() error {
	if c.open != nil {
		_ = c.open.Close()
	}
	_ = c.fail(nil)
	if c.conn.IsClosed() {
		return errClosedConnection
	}
	_, err := c.conn.Exec(context.Background(), `ROLLBACK`)
	return err
}

func (c *server) sendCommit(following string, args []any) (tag pgconn.CommandTag, err error) {
	behind := 0
	if following != "" {
		behind = 1
		if _, err := c.statement(following); err != nil { // while nothing needs to be kept of what is under way
			return tag, err
		}
	}
	err = c.send(`COMMIT`, nil)
	if err == nil && behind > 0 {
		err = c.send(following, args)
	}
	if err == nil {
		err = c.reach(behind)
	}
	if err != nil {
		return tag, err
	}
	if tag, err = c.end(); err == nil && behind == 0 {
		err = c.settle()
	}
	return tag, err
}

// aborted reports whether the transaction can only be rolled back: here any error does that.
func (c *server) aborted() bool { return c.conn.IsClosed() || c.conn.PgConn().TxStatus() == 'E' }

func (c *server) secretly(fn func() error) error { return fn() } // the space is overwritten as the table is used on

func (c *server) close() error {
	_ = c.conn.PgConn().Conn().SetDeadline(time.Now().Add(connectTimeout)) // for what is still under way
	_ = c.fail(nil)
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	return c.conn.Close(ctx)
}

func (c *server) explain(err error) (explained error, lost bool) {
	err = explainPostgres(err)
	if lost = c.conn.IsClosed(); lost && !errors.Is(err, errRedo) {
		err = fmt.Errorf("%w: %w", errRedo, err) // nothing of it is durable: it may be done again
	}
	return err, lost
}

var errClosedConnection = errors.New("ledger: the connection to the server is closed")
