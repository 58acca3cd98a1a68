package postgres

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"jobledger/ledger/internal/engine"
)

// queryRows are the rows of a query.
type queryRows struct {
	conn     *connection
	rows     rawRows
	names    []string
	more     bool // the current row of rows has not been taken yet
	ended    bool
	err      error
	buffered [][]driver.Value // rows that were taken before another statement was sent
}

// rawRows are the rows of a query as the server sends them.
type rawRows interface {
	Next() bool
	RawValues() [][]byte
	FieldDescriptions() []pgconn.FieldDescription
	Close()
	Err() error // after Close
}

// pipedRows are the rows of a statement in a pipeline.
type pipedRows struct {
	*pgconn.ResultReader
	conn *connection
	err  error
}

func (r *pipedRows) Next() bool          { return r.NextRow() }
func (r *pipedRows) RawValues() [][]byte { return r.Values() }
func (r *pipedRows) Err() error          { return r.err }

func (r *pipedRows) Close() {
	if _, err := r.ResultReader.Close(); err != nil {
		r.err = r.conn.abandon(err)
	}
}

// prefetch is a query in the pipeline. Its rows are read when they are wanted, or when rows of a later query
// are.
type prefetch struct {
	conn   *connection
	before int // statements before it whose results were not read
	rows   *queryRows
}

// Prefetch implements engine.Connection. A connection has one prefetched query at a time.
func (c *connection) Prefetch(query string, args []any) (engine.ReadRows, error) {
	if !c.writes {
		return nil, nil
	}
	for ; c.prefetched != nil; c.unread-- { // which is not wanted any more
		if err := c.skipResult(); err != nil {
			return nil, err
		}
	}
	if err := c.send(c.text(query), args); err != nil {
		return nil, err
	}
	if err := c.Push(); err != nil {
		return nil, err
	}
	f := &prefetch{conn: c, before: c.unread - 1}
	c.prefetched = f
	return f.read, nil
}

// begin starts to read its rows, when no result is left before it.
func (f *prefetch) begin() error {
	c := f.conn
	c.prefetched = nil
	results, err := c.nextResult()
	if err != nil {
		return err
	}
	f.rows, err = c.rowsOf(&pipedRows{ResultReader: results, conn: c})
	return err
}

func (f *prefetch) read() (driver.Rows, []driver.Value, error) {
	c := f.conn
	for ; c.prefetched == f; c.unread-- {
		if f.before > 0 {
			if err := c.skipResult(); err != nil {
				return nil, nil, err
			}
		} else if err := f.begin(); err != nil {
			return nil, nil, err
		}
	}
	if f.rows == nil {
		return nil, nil, engine.ErrRetry // the pipeline has failed
	}
	return f.rows, make([]driver.Value, len(f.rows.Columns())), nil
}

// readAnswer reads all rows of a warm-up query.
func readAnswer(rows pgx.Rows, err error) (a engine.Answer, _ error) {
	if err != nil {
		return a, err
	}
	defer rows.Close()
	for _, f := range rows.FieldDescriptions() {
		a.Columns = append(a.Columns, f.Name)
	}
	for rows.Next() {
		row := make([]driver.Value, len(a.Columns))
		if err := valuesOf(rows, row); err != nil {
			return a, err
		}
		a.Rows = append(a.Rows, row)
	}
	return a, rows.Err()
}

// rowsOf starts to read rows.
func (c *connection) rowsOf(rows rawRows) (*queryRows, error) {
	r := &queryRows{conn: c, rows: rows}
	c.openRows = r
	r.more = rows.Next() // an error of the query comes here, and so do its columns
	if !r.more {
		if err := r.end(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *queryRows) fields() []pgconn.FieldDescription { return r.rows.FieldDescriptions() }

// Columns returns the names of the columns.
func (r *queryRows) Columns() []string {
	if r.names == nil {
		for _, f := range r.fields() {
			r.names = append(r.names, f.Name)
		}
	}
	return r.names
}

// Next reads the next row into dest.
func (r *queryRows) Next(dest []driver.Value) error {
	if len(r.buffered) > 0 {
		copy(dest, r.buffered[0])
		r.buffered = r.buffered[1:]
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

// take reads the current row and goes to the next.
func (r *queryRows) take(dest []driver.Value) (err error) {
	if err = valuesOf(r.rows, dest); err == nil {
		r.more = r.rows.Next()
	}
	return err
}

// valuesOf reads the current row of rows into dest.
func valuesOf(rows rawRows, dest []driver.Value) (err error) {
	fields := rows.FieldDescriptions()
	for i, raw := range rows.RawValues() {
		if dest[i], err = valueOf(&fields[i], raw); err != nil {
			return err
		}
	}
	return nil
}

// end closes the rows, and returns why they ended early, if they did.
func (r *queryRows) end() error {
	if r.ended {
		return r.err
	}
	r.ended, r.more = true, false
	r.rows.Close()
	err := r.rows.Err()
	if r.conn.openRows == r {
		r.conn.openRows = nil
	}
	if r.err == nil {
		r.err = err
	}
	return r.err
}

// Close ends the query.
func (r *queryRows) Close() error {
	r.buffered = nil
	return r.end()
}

// valueOf converts a field to what the driver of SQLite returns: int64, float64, string, []byte or nil.
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
	return nil, fmt.Errorf("ledger: column %s has a type that is not supported (%d)", f.Name, f.DataTypeOID)
}
