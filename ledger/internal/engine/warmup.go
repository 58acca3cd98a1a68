package engine

import (
	"database/sql/driver"
	"io"
)

// WarmupQuery is a query with its arguments that is sent as a transaction begins.
type WarmupQuery struct {
	Query string
	Args  []any
}

// Answer is the rows of a WarmupQuery.
type Answer struct {
	Query   string
	Columns []string
	Rows    [][]driver.Value
}

// Read is a ReadRows of the answer.
func (a *Answer) Read() (driver.Rows, []driver.Value, error) {
	return &answerRows{a.Columns, a.Rows}, make([]driver.Value, len(a.Columns)), nil
}

// answerRows are rows in memory.
type answerRows struct {
	columns []string
	rows    [][]driver.Value
}

func (r *answerRows) Columns() []string { return r.columns }

func (r *answerRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

func (r *answerRows) Close() error { return nil }
