package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/ledger/internal/engine"
)

// connection is a connection to PostgreSQL. A writing one pipelines its statements: it sends them without
// waiting for the results of those before, and reads a result when something depends on it. So the server
// executes what was decided while the client decides what is next, and only queries cost a round trip.
type connection struct {
	conn       *pgx.Conn
	writes     bool
	pipeline   *pgconn.Pipeline // nil: no statement is in it
	unread     int              // statements in the pipeline whose results nothing waits for
	unsent     bool             // some statements are buffered by the client
	openRows   *queryRows       // whose rows still come from the connection; nil: none
	prefetched *prefetch        // a query in the pipeline; nil: none, or its rows were read
	texts      map[string]string
	bulkTexts  map[bulkKey]string
	statements map[string]*pgconn.StatementDescription // prepared, by text in PostgreSQL's words
	prepares   int                                     // statements that were ever prepared
	builder    pgx.ExtendedQueryBuilder
}

// connOf returns the connection of a session.
func connOf(s *engine.Session) *connection { return s.Connection.(*connection) }

// text returns query in PostgreSQL's words.
func (c *connection) text(query string) string {
	if text, ok := c.texts[query]; ok {
		return text
	}
	if c.texts == nil || len(c.texts) > engine.MaxStatements {
		c.texts = make(map[string]string)
	}
	text := translate(query)
	c.texts[query] = text
	return text
}

// head runs statements, reads the head of the ledger, and runs the queries.
func (c *connection) head(
	ctx context.Context, first *pgx.Batch, queries []engine.WarmupQuery,
) (engine.Head, error) {
	var at engine.Head
	n := first.Len()
	first.Queue(selectHead)
	for _, q := range queries {
		first.Queue(c.text(q.Query), q.Args...)
	}
	results := c.conn.SendBatch(ctx, first)
	var err error
	for range n {
		if _, err = results.Exec(); err != nil {
			break
		}
	}
	if err == nil {
		var now int64
		err = results.QueryRow().Scan(&now, &at.Tail, &at.TailAt)
		at.Now = time.UnixMicro(now).UTC()
	}
	for i := 0; i < len(queries) && err == nil; i++ {
		var a engine.Answer
		if a, err = readAnswer(results.Query()); err == nil {
			a.Query = queries[i].Query
			at.Prefetched = append(at.Prefetched, a)
		}
	}
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return at, explain(err)
}

// send sends a statement, without waiting for anything.
func (c *connection) send(text string, args []any) error {
	if err := c.bufferRows(); err != nil {
		return err
	}
	statement, err := c.statement(text)
	if err != nil {
		return err
	}
	if err := c.builder.Build(c.conn.TypeMap(), statement, args); err != nil {
		return err
	}
	if c.pipeline == nil {
		c.pipeline = c.conn.PgConn().StartPipeline(context.Background())
	}
	b := &c.builder
	c.pipeline.SendQueryPrepared(statement.Name, b.ParamValues, b.ParamFormats, b.ResultFormats)
	c.unread++
	c.unsent = true
	return nil
}

// statement returns the prepared statement of a text.
func (c *connection) statement(text string) (*pgconn.StatementDescription, error) {
	if statement, ok := c.statements[text]; ok {
		return statement, nil
	}
	return c.prepare(text)
}

// prepare has the server prepare a statement, which needs an empty pipeline.
func (c *connection) prepare(text string) (*pgconn.StatementDescription, error) {
	if err := c.drainPipeline(); err != nil {
		return nil, err
	}
	if len(c.statements) > engine.MaxStatements {
		if err := c.conn.DeallocateAll(context.Background()); err != nil {
			return nil, err
		}
		clear(c.statements)
	}
	statement, err := c.conn.PgConn().Prepare(context.Background(), fmt.Sprintf("s%d", c.prepares), text, nil)
	if err != nil {
		return nil, err
	}
	if c.prepares++; c.statements == nil {
		c.statements = make(map[string]*pgconn.StatementDescription)
	}
	c.statements[text] = statement
	return statement, nil
}

// maxUnread bounds the statements in the pipeline, which have up to 64 rows each.
const maxUnread = 256

// Push sends the buffered statements with a Sync message, so that the server is idle between them. Only an
// idle session can hit its timeout, which frees a lock whose holder is frozen.
func (c *connection) Push() error {
	if !c.unsent {
		return nil
	}
	c.unsent = false
	if err := c.pipeline.Sync(); err != nil {
		return c.abandon(err)
	}
	return c.skipTo(maxUnread)
}

// skipTo skips results until so many are left.
func (c *connection) skipTo(left int) error {
	for ; c.unread > left; c.unread-- {
		if err := c.skipResult(); err != nil {
			return err
		}
	}
	return nil
}

// awaitLast waits for all statements before the last, or before the last with so many after it. Its results
// are next then. An error of an earlier statement wraps ErrRetry.
func (c *connection) awaitLast(after int) error {
	err := c.Push()
	if err == nil {
		err = c.skipTo(1 + after)
	}
	if err == nil {
		c.unread = after
	}
	return err
}

// skipResult reads the next result for its error only, but keeps the rows of a prefetched query.
func (c *connection) skipResult() (err error) {
	if f := c.prefetched; f != nil && f.before == 0 {
		if err = f.begin(); err == nil {
			err = c.bufferRows()
		}
	} else {
		if f != nil {
			f.before--
		}
		_, err = c.finishResult()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrRetry, err)
	}
	return nil
}

// finishResult reads the next result to its end.
func (c *connection) finishResult() (tag pgconn.CommandTag, err error) {
	r, err := c.nextResult()
	if err != nil {
		return tag, err
	}
	if tag, err = r.Close(); err != nil {
		err = c.abandon(err)
	}
	return tag, err
}

// nextResult returns the next result.
func (c *connection) nextResult() (*pgconn.ResultReader, error) {
	r, err := c.receive()
	if err != nil {
		return nil, c.abandon(err)
	}
	return r, nil
}

func (c *connection) receive() (*pgconn.ResultReader, error) {
	for {
		results, err := c.pipeline.GetResults()
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

// abandon ends the pipeline, whose remaining statements the server skips after an error, and returns err. pgx
// itself closes a broken connection, which must not be disturbed.
func (c *connection) abandon(err error) error {
	if c.pipeline != nil && !c.conn.IsClosed() {
		_ = c.pipeline.Sync()
		_ = c.pipeline.Close()
	}
	c.pipeline, c.unread, c.unsent, c.prefetched = nil, 0, false, nil
	return err
}

// drainPipeline waits until the pipeline is empty.
func (c *connection) drainPipeline() error {
	if c.pipeline == nil {
		return nil
	}
	if err := c.Push(); err != nil {
		return fmt.Errorf("%w: %w", engine.ErrRetry, err)
	}
	if err := c.skipTo(0); err != nil {
		return err
	}
	err := c.pipeline.Close()
	c.pipeline = nil
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrRetry, err)
	}
	return nil
}

// Run implements engine.Connection.
func (c *connection) Run(query string, args []any) (changed int64, err error) {
	tag, err := c.runOne(c.text(query), args)
	return tag.RowsAffected(), err
}

// runOne sends a statement and waits for its result.
func (c *connection) runOne(text string, args []any) (tag pgconn.CommandTag, err error) {
	if !c.writes {
		if err := c.bufferRows(); err != nil {
			return tag, err
		}
		return c.conn.Exec(context.Background(), text, args...)
	}
	if err := c.send(text, args); err != nil {
		return tag, err
	}
	if err := c.awaitLast(0); err != nil {
		return tag, err
	}
	return c.finishResult()
}

// InsertRow implements engine.Connection.
func (c *connection) InsertRow(query string, args []any) (n int64, err error) {
	rows, _, err := c.Select(context.Background(), query+` RETURNING n`, args)
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

// Select implements engine.Connection.
func (c *connection) Select(
	ctx context.Context, query string, args []any,
) (driver.Rows, []driver.Value, error) {
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

func (c *connection) query(ctx context.Context, query string, args []any) (rawRows, error) {
	if !c.writes {
		if err := c.bufferRows(); err != nil {
			return nil, err
		}
		return c.conn.Query(ctx, c.text(query), args...)
	}
	if err := c.send(c.text(query), args); err != nil {
		return nil, err
	}
	if err := c.awaitLast(0); err != nil {
		return nil, err
	}
	results, err := c.nextResult()
	if err != nil {
		return nil, err
	}
	return &pipedRows{ResultReader: results, conn: c}, nil
}

// bufferRows reads the rest of the open rows, so that another statement can be sent.
func (c *connection) bufferRows() error {
	if c.openRows == nil {
		return nil
	}
	r := c.openRows
	r.Columns() // before those of the next statement overwrite them
	for r.more {
		row := make([]driver.Value, len(r.fields()))
		if r.err = r.take(row); r.err != nil {
			break
		}
		r.buffered = append(r.buffered, row)
	}
	return r.end()
}

// PutRows implements engine.Connection.
func (c *connection) PutRows(l *engine.BulkStmt, rows int, args []any) error {
	text, bound := c.bulkText(l, rows, args, false)
	return c.send(text, bound)
}

// PutRow implements engine.Connection.
func (c *connection) PutRow(l *engine.BulkStmt, args []any) error {
	text, bound := c.bulkText(l, 1, args, true)
	tag, err := c.runOne(text, bound)
	if err == nil && l.CompareAndSwap && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%w: the row was not as expected", engine.ErrConflict)
	}
	return err
}

// commit commits, and waits for everything in the pipeline. The statement after is sent right after it, as a
// transaction of its own that nothing waits for.
func (c *connection) commit(after string, args ...any) error {
	tag, err := c.sendCommit(after, args)
	if err == nil && tag.String() != "COMMIT" {
		err = fmt.Errorf("%w: the server answered %s", engine.ErrRetry, tag)
	}
	if err == nil {
		return nil
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	err, _ = c.Explain(err)
	if ok && refused.Severity == "ERROR" { // the server is alive and has not committed
		return fmt.Errorf("%w: %w", engine.ErrRetry, err)
	}
	return fmt.Errorf("%w: %w", engine.ErrUnknown, notRetryable{err})
}

func (c *connection) rollback() error {
	if c.openRows != nil {
		_ = c.openRows.Close()
	}
	_ = c.abandon(nil)
	if c.conn.IsClosed() {
		return errClosed
	}
	_, err := c.conn.Exec(context.Background(), `ROLLBACK`)
	return err
}

func (c *connection) sendCommit(after string, args []any) (tag pgconn.CommandTag, err error) {
	follows := 0
	if after != "" {
		follows = 1
		if _, err := c.statement(after); err != nil { // before COMMIT, because to prepare drains the pipeline
			return tag, err
		}
	}
	err = c.send(`COMMIT`, nil)
	if err == nil && follows > 0 {
		err = c.send(after, args)
	}
	if err == nil {
		err = c.awaitLast(follows)
	}
	if err != nil {
		return tag, err
	}
	if tag, err = c.finishResult(); err == nil && follows == 0 {
		err = c.drainPipeline()
	}
	return tag, err
}

// Aborted implements engine.Connection: any error aborts the transaction.
func (c *connection) Aborted() bool { return c.conn.IsClosed() || c.conn.PgConn().TxStatus() == 'E' }

// WithSecureDelete runs fn: the server overwrites the space as it reuses the table.
func (c *connection) WithSecureDelete(fn func() error) error { return fn() }

// Close implements engine.Connection.
func (c *connection) Close() error {
	_ = c.conn.PgConn().Conn().SetDeadline(time.Now().Add(connectTimeout)) // for what is still in the pipeline
	_ = c.abandon(nil)
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	return c.conn.Close(ctx)
}

// Explain implements engine.Connection: nothing of a transaction survives its connection.
func (c *connection) Explain(err error) (explained error, lost bool) {
	err = explain(err)
	if lost = c.conn.IsClosed(); lost && !errors.Is(err, engine.ErrRetry) {
		err = fmt.Errorf("%w: %w", engine.ErrRetry, err) // nothing of it is durable
	}
	return err, lost
}

var errClosed = errors.New("ledger: the connection to the server is closed")
