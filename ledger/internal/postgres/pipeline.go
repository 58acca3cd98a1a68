package postgres

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"jobledger/ledger/internal/engine"
)

// The pipeline. A writing connection sends statements without waiting for the results of those before, and
// reads a result when something depends on it. So the server executes what was decided while the client
// decides what is next, and only queries cost a round trip.

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

func (c *connection) receive() (*pgconn.ResultReader, error) { return c.receiveWithin(c.answerTime) }

// receiveWithin returns the next result, for which the server may take so long; 0: as long as it likes.
func (c *connection) receiveWithin(within time.Duration) (*pgconn.ResultReader, error) {
	c.expectAnswer(within)
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
	c.expectAnswer(c.answerTime)
	statement, err := c.conn.PgConn().Prepare(context.Background(), nameOf(text), text, nil)
	if err != nil {
		return nil, err
	}
	if c.statements == nil {
		c.statements = make(map[string]*pgconn.StatementDescription)
	}
	c.statements[text] = statement
	return statement, nil
}

// nameOf returns the name of a prepared statement. It depends on the text only: where a pooler gives a burst
// the session of another client, the burst finds out before it has done anything else than it says.
func nameOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}
