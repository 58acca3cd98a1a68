package ledger

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// server is a connection to PostgreSQL. What need not be answered at once waits, and goes with the next statement: a
// round trip costs more than most statements do.
type server struct {
	conn  *pgx.Conn
	waits pgx.Batch         // statements that have not been sent
	open  *serverRows       // whose rows still come from the connection; nil: none
	texts map[string]string // statements as PostgreSQL has them
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

// send sends what waits, and query behind it. The results are query's; the caller closes them.
func (c *server) send(ctx context.Context, query string, args []any) (pgx.BatchResults, error) {
	if err := c.drain(); err != nil {
		return nil, err
	}
	batch := c.waits
	c.waits = pgx.Batch{}
	before := batch.Len()
	batch.Queue(query, args...)
	results := c.conn.SendBatch(ctx, &batch)
	for range before {
		if _, err := results.Exec(); err != nil {
			_ = results.Close()
			return nil, fmt.Errorf("%w: %w", errRedo, err)
		}
	}
	return results, nil
}

func (c *server) run(query string, args []any) (changed int64, err error) {
	tag, err := c.finish(c.text(query), args)
	return tag.RowsAffected(), err
}

func (c *server) finish(text string, args []any) (pgconn.CommandTag, error) {
	results, err := c.send(context.Background(), text, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := results.Exec()
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return tag, err
}

func (c *server) insert(query string, args []any) (n int64, err error) {
	results, err := c.send(context.Background(), c.text(query)+` RETURNING n`, args)
	if err != nil {
		return 0, err
	}
	err = results.QueryRow().Scan(&n)
	if closeErr := results.Close(); err == nil {
		err = closeErr
	}
	return n, err
}

func (c *server) ask(ctx context.Context, query string, args []any) (driver.Rows, []driver.Value, error) {
	r := &serverRows{connection: c}
	var err error
	if c.waits.Len() > 0 {
		if r.batch, err = c.send(ctx, c.text(query), args); err == nil {
			r.rows, err = r.batch.Query()
		}
	} else if err = c.drain(); err == nil {
		r.rows, err = c.conn.Query(ctx, c.text(query), args...)
	}
	if err != nil {
		if r.batch != nil {
			_ = r.batch.Close()
		}
		return nil, nil, err
	}
	c.open = r
	r.more = r.rows.Next() // an error of the query comes here, and so do its columns
	if !r.more {
		if err := r.end(); err != nil {
			return nil, nil, err
		}
	}
	return r, make([]driver.Value, len(r.fields())), nil
}

// drain reads what is left of the open rows, so that another statement can be sent.
func (c *server) drain() error {
	if c.open == nil {
		return nil
	}
	r := c.open
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
	c.waits.Queue(text, bound...)
	return nil
}

func (c *server) putOne(l *List, args []any) error {
	text, bound := l.inPostgres(1, args, true)
	tag, err := c.finish(text, bound)
	if err == nil && l.exact && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%w: the row was not as expected", ErrConflict)
	}
	return err
}

// commit commits, together with what waits.
func (c *server) commit() error {
	if err := c.drain(); err != nil {
		return fmt.Errorf("%w: %w", errRedo, err)
	}
	tag, err := c.finish(`COMMIT`, nil)
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
	c.waits = pgx.Batch{}
	if err := c.drain(); err != nil && c.conn.IsClosed() {
		return err
	}
	_, err := c.finish(`ROLLBACK`, nil)
	return err
}

// aborted reports whether the transaction can only be rolled back: here any error does that.
func (c *server) aborted() bool { return c.conn.IsClosed() || c.conn.PgConn().TxStatus() == 'E' }

func (c *server) secretly(fn func() error) error { return fn() } // the space is overwritten as the table is used on

func (c *server) close() error {
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

// withoutRedo hides that the transaction may be done again: it may not, once COMMIT has been sent.
type withoutRedo struct{ error }

func (e withoutRedo) Is(target error) bool { return target != errRedo && errors.Is(e.error, target) }

// explainConnect says in one line why there is no connection. pgx tells of every address that it tried, with and without
// TLS.
func explainConnect(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return explainPostgres(e)
	}
	lines := strings.Split(err.Error(), "\n")
	return fmt.Errorf("%w: the server cannot be reached: %s", ErrIO, strings.TrimSpace(lines[len(lines)-1]))
}

// explainPostgres wraps an error of PostgreSQL in the sentinel that callers branch on, once.
func explainPostgres(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{ErrBusy, ErrFull, ErrIO, ErrReadOnly, ErrConflict, ErrDamaged, ErrUnknown, ErrAddress, ErrNoLedger, ErrNotALedger,
		ErrNewerSchema, fs.ErrPermission, context.Canceled} {
		if errors.Is(err, known) {
			return err
		}
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrIO, err) // of the connection
	}
	// https://www.postgresql.org/docs/current/errcodes-appendix.html
	switch e.Code {
	case "22012", "23505", "JL001": // a compare-and-swap that lost divides by zero
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case "55P03", "53300": // the lock did not come; too many connections
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case "53100":
		return fmt.Errorf("%w: %w", ErrFull, err)
	case "25006", "42501":
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case "3D000": // no such database
		return fmt.Errorf("%w: %w", ErrNoLedger, err)
	case "22P02", "22P05", "22030", "22032", "42P01", "42703": // text that is no JSON, a table or a column that is missing
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch e.Code[:2] {
	case "40": // a deadlock, or another's write came first
		return fmt.Errorf("%w: %w", errRedo, err)
	case "08", "57", "58": // the connection, an operator, the system
		return fmt.Errorf("%w: %w", ErrIO, err)
	}
	return err
}

// serverRows are the rows of a query.
type serverRows struct {
	connection *server
	rows       pgx.Rows
	batch      pgx.BatchResults // that rows are part of; nil: of none
	names      []string
	more       bool // rows stands on a row that has not been taken
	ended      bool
	err        error
	ahead      [][]driver.Value // taken before another statement was sent
}

func (r *serverRows) fields() []pgconn.FieldDescription { return r.rows.FieldDescriptions() }

// Columns returns the names of the columns.
func (r *serverRows) Columns() []string {
	if r.names == nil {
		for _, f := range r.fields() {
			r.names = append(r.names, f.Name)
		}
	}
	return r.names
}

// Next reads the next row into dest.
func (r *serverRows) Next(dest []driver.Value) error {
	if len(r.ahead) > 0 {
		copy(dest, r.ahead[0])
		r.ahead = r.ahead[1:]
		return nil
	}
	if r.more {
		return r.take(dest)
	}
	if err := r.end(); err != nil {
		return err
	}
	return io.EOF
}

// take reads the row that rows stands on, and goes to the next.
func (r *serverRows) take(dest []driver.Value) (err error) {
	for i, raw := range r.rows.RawValues() {
		if dest[i], err = valueOf(&r.fields()[i], raw); err != nil {
			return err
		}
	}
	r.more = r.rows.Next()
	return nil
}

// end closes the rows, and returns why they ended early, if they did.
func (r *serverRows) end() error {
	if r.ended {
		return r.err
	}
	r.ended, r.more = true, false
	r.rows.Close()
	err := r.rows.Err()
	if r.batch != nil {
		if closeErr := r.batch.Close(); err == nil {
			err = closeErr
		}
	}
	if r.connection.open == r {
		r.connection.open = nil
	}
	if r.err == nil {
		r.err = err
	}
	return r.err
}

// Close ends the query.
func (r *serverRows) Close() error {
	r.ahead = nil
	return r.end()
}

// valueOf makes of a field what the driver of SQLite would have given: int64, float64, string, []byte or nil.
func valueOf(f *pgconn.FieldDescription, raw []byte) (driver.Value, error) {
	if raw == nil {
		return nil, nil
	}
	binaryForm := f.Format == pgtype.BinaryFormatCode
	switch f.DataTypeOID {
	case pgtype.Int8OID, pgtype.Int4OID, pgtype.Int2OID:
		if binaryForm {
			switch len(raw) {
			case 8:
				return int64(binary.BigEndian.Uint64(raw)), nil
			case 4:
				return int64(int32(binary.BigEndian.Uint32(raw))), nil
			case 2:
				return int64(int16(binary.BigEndian.Uint16(raw))), nil
			}
		}
	case pgtype.TextOID, pgtype.VarcharOID, pgtype.JSONOID, pgtype.NameOID, pgtype.UnknownOID:
		return string(raw), nil
	case pgtype.ByteaOID:
		if binaryForm {
			return append([]byte{}, raw...), nil
		}
	case pgtype.BoolOID:
		if binaryForm && len(raw) == 1 {
			return int64(raw[0]), nil
		}
	case pgtype.Float8OID:
		if binaryForm && len(raw) == 8 {
			return math.Float64frombits(binary.BigEndian.Uint64(raw)), nil
		}
	}
	return nil, fmt.Errorf("ledger: column %s is of a type that is not read (%d)", f.Name, f.DataTypeOID)
}
