package ledger

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// serverRows are the rows of a query.
type serverRows struct {
	connection *server
	rows       rawRows
	names      []string
	more       bool // rows stands on a row that has not been taken
	ended      bool
	err        error
	ahead      [][]driver.Value // taken before another statement was sent
}

// rawRows are the rows of a query as they come.
type rawRows interface {
	Next() bool
	RawValues() [][]byte
	FieldDescriptions() []pgconn.FieldDescription
	Close()
	Err() error // after Close
}

// pipedRows are those of a statement among others that are under way.
type pipedRows struct {
	*pgconn.ResultReader
	connection *server
	err        error
}

func (r *pipedRows) Next() bool          { return r.NextRow() }
func (r *pipedRows) RawValues() [][]byte { return r.Values() }
func (r *pipedRows) Err() error          { return r.err }

func (r *pipedRows) Close() {
	if _, err := r.ResultReader.Close(); err != nil {
		r.err = r.connection.fail(err)
	}
}

// foreseen is a query under way whose rows are read when they are wanted, or when something behind it is.
type foreseen struct {
	connection *server
	before     int // statements under way that nobody has asked about
	rows       *serverRows
}

func (c *server) foresee(query string, args []any) (func() (driver.Rows, []driver.Value, error), error) {
	if !c.writes {
		return nil, nil
	}
	for ; c.foreseen != nil; c.owed-- { // which nobody wants any more
		if err := c.skip(); err != nil {
			return nil, err
		}
	}
	if err := c.send(c.text(query), args); err != nil {
		return nil, err
	}
	if err := c.push(); err != nil {
		return nil, err
	}
	f := &foreseen{connection: c, before: c.owed - 1}
	c.foreseen = f
	return f.read, nil
}

// begin comes to its rows, with nothing before it any more.
func (f *foreseen) begin() error {
	c := f.connection
	c.foreseen = nil
	results, err := c.begin()
	if err != nil {
		return err
	}
	f.rows, err = c.rowsOf(&pipedRows{ResultReader: results, connection: c})
	return err
}

func (f *foreseen) read() (driver.Rows, []driver.Value, error) {
	c := f.connection
	for ; c.foreseen == f; c.owed-- {
		if f.before > 0 {
			if err := c.skip(); err != nil {
				return nil, nil, err
			}
		} else if err := f.begin(); err != nil {
			return nil, nil, err
		}
	}
	if f.rows == nil {
		return nil, nil, errRedo // what was under way has failed
	}
	return f.rows, make([]driver.Value, len(f.rows.Columns())), nil
}

// readAnswer reads all rows of a question.
func readAnswer(rows pgx.Rows, err error) (a answer, _ error) {
	if err != nil {
		return a, err
	}
	defer rows.Close()
	for _, f := range rows.FieldDescriptions() {
		a.names = append(a.names, f.Name)
	}
	for rows.Next() {
		row := make([]driver.Value, len(a.names))
		if err := valuesOf(rows, row); err != nil {
			return a, err
		}
		a.rows = append(a.rows, row)
	}
	return a, rows.Err()
}

// read returns rows that were read as the transaction began.
func (a *answer) read() (driver.Rows, []driver.Value, error) {
	return &serverRows{names: a.names, ahead: a.rows, ended: true}, make([]driver.Value, len(a.names)), nil
}

// rowsOf begins to read rows.
func (c *server) rowsOf(rows rawRows) (*serverRows, error) {
	r := &serverRows{connection: c, rows: rows}
	c.open = r
	r.more = rows.Next() // an error of the query comes here, and so do its columns
	if !r.more {
		if err := r.end(); err != nil {
			return nil, err
		}
	}
	return r, nil
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
	if err = valuesOf(r.rows, dest); err == nil {
		r.more = r.rows.Next()
	}
	return err
}

// valuesOf reads the row that rows stands on into dest.
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
func (r *serverRows) end() error {
	if r.ended {
		return r.err
	}
	r.ended, r.more = true, false
	r.rows.Close()
	err := r.rows.Err()
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
