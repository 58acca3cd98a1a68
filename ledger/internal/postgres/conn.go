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

// connection is a connection to PostgreSQL. A writing one pipelines its statements: see pipeline.go.
type connection struct {
	conn         *pgx.Conn
	writes       bool
	pipeline     *pgconn.Pipeline // nil: no statement is in it
	unread       int              // statements in the pipeline whose results nothing waits for
	unsent       bool             // some statements are buffered by the client
	openRows     *queryRows       // whose rows still come from the connection; nil: none
	prefetched   *prefetch        // a query in the pipeline; nil: none, or its rows were read
	texts        map[string]string
	conditionals map[string]string // the texts of bursts with their condition
	bulkTexts    map[bulkKey]string
	statements   map[string]*pgconn.StatementDescription // prepared, by text in PostgreSQL's words
	builder      pgx.ExtendedQueryBuilder
	mark         string // of its session; see settings.go
	pid          uint32 // of its session; behind a pooler not the one of the connection

	answerTime time.Duration // see Engine.AnswerTime; 0: no limit

	lockTimeout int64 // as it is set in the session, in milliseconds
}

// expectAnswer limits how long the server may take to answer from now on. A process of the server that was
// stopped, or whose disk does not answer, closes nothing, and its host acknowledges what it is sent.
func (c *connection) expectAnswer(within time.Duration) {
	if within > 0 {
		_ = c.conn.PgConn().Conn().SetReadDeadline(time.Now().Add(within)) // an error would come with the read
	}
}

// unlimited runs fn, which may take the server long.
func (c *connection) unlimited(fn func() error) error {
	limit := c.answerTime
	c.answerTime = 0
	_ = c.conn.PgConn().Conn().SetReadDeadline(time.Time{})
	defer func() { c.answerTime = limit }()
	return fn()
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

// head runs statements, reads the head of the ledger, and runs the queries. read gets the results of the
// first statements, without the results of the first skip ones.
func (c *connection) head(ctx context.Context, first *pgx.Batch, queries []engine.WarmupQuery,
	skip int, read func(pgx.BatchResults) error) (at engine.Head, err error) {
	first.Queue(selectHead)
	for _, q := range queries {
		first.Queue(c.text(q.Query), q.Args...)
	}
	results := c.conn.SendBatch(ctx, first)
	for range skip {
		if _, err = results.Exec(); err != nil {
			break
		}
	}
	if err == nil {
		err = read(results)
	}
	if err == nil {
		var now int64
		var mark string
		err = results.QueryRow().Scan(&now, &at.Tail, &at.TailAt, &mark)
		at.Now = time.UnixMicro(now).UTC()
		if err == nil && mark != c.mark {
			err = errPooled
		}
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

// Run implements engine.Connection. To make an index, or to empty a table, may take long.
func (c *connection) Run(query string, args []any) (changed int64, err error) {
	err = c.unlimited(func() error {
		tag, err := c.runOne(c.text(query), args)
		changed = tag.RowsAffected()
		return err
	})
	return changed, err
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

// commit commits, and waits for everything in the pipeline. The statement after follows it at once, as a
// transaction of its own that no caller waits for.
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
	c.expectAnswer(c.answerTime)
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
