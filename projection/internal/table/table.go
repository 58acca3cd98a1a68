// Package table is the layout of the table jobs, as projection writes it and audit compares it, and ways to
// read the rows of a query. It knows columns and values, not what they mean.
//
// Held by TestHistoriesAreReadBackEqual of package projection, and by TestVerifyNamesEachDamagedColumn and
// TestRebuildRepairsAnyDamage of package projection/audit.
package table

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
)

// Columns are those of the table jobs, in the order of a Row.
var Columns = [...]string{"n", "id", "seq", "state", "lane", "queue", "priority", "run_at", "key", "attempt",
	"failures",
	"snoozes", "max_attempts", "max_runtime", "worker", "lease_token", "claimed_at", "heartbeat_at",
	"lease_expires_at", "end_by", "finished_at", "error_code", "more"}

// Width is the number of columns.
const Width = len(Columns)

// Row is a job as the table holds it: int64, string or nil in each place.
type Row [Width]any

// List is all columns as the select list of a query on jobs j.
var List = "j." + strings.Join(Columns[:], ", j.")

// Types are the types of the columns that are not integers.
var Types = ledger.ColumnTypes{"id": ledger.TextColumn, "lane": ledger.TextColumn, "key": ledger.TextColumn,
	"lease_token": ledger.TextColumn,
	"error_code":  ledger.TextColumn, "more": ledger.JSONColumn}

// New inserts a Row.
var New = ledger.NewSparseInsert("jobs", Types, Columns[:]...)

// Text returns s as a column holds it: null if it is empty.
func Text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Number returns n as a column holds it: null if it is zero.
func Number(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// Moment returns t as a column holds it: microseconds, null if it is zero.
func Moment(t time.Time) any { return Number(event.Micros(t)) }

// Each scans the rows of a query one by one into the same places, and calls row after each. It closes the
// rows. err is that of the query.
func Each(rows *ledger.Rows, err error, into []any, row func() error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := row(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// First scans the first row of a query, if it has any, and closes the rows. Without a row, into keeps its
// values. err is that of the query.
func First(rows *ledger.Rows, err error, into ...any) (found bool, _ error) {
	if err != nil {
		return false, err
	}
	defer rows.Close()
	if found = rows.Next(); found {
		err = rows.Scan(into...)
	}
	return found, cmp.Or(err, rows.Err())
}

// All returns the rows of a query; into says where in a T the columns go. It closes the rows. err is that of
// the query.
func All[T any](rows *ledger.Rows, err error, into func(*T) []any) (found []T, _ error) {
	var t, none T
	err = Each(rows, err, into(&t), func() error {
		found = append(found, t)
		t = none
		return nil
	})
	return found, err
}

// Column returns the values of a query for one column, and closes the rows. err is that of the query.
func Column[T any](rows *ledger.Rows, err error) ([]T, error) {
	return All(rows, err, func(value *T) []any { return []any{value} })
}

// ScanOne runs a query for at most one row. Without a row, into keeps its values.
func ScanOne(ctx context.Context, tx *ledger.Tx, query string, into []any, args ...any) error {
	rows, err := tx.Query(ctx, query, args...)
	_, err = First(rows, err, into...)
	return err
}

// Numbers runs a query for one column of integers and returns these.
func Numbers(ctx context.Context, tx *ledger.Tx, query string, args ...any) (ns []int64, err error) {
	return Column[int64](tx.Query(ctx, query, args...))
}

// Placeholders returns n question marks, separated by commas.
func Placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// Chunk is how many numbers one statement with Chunks has.
const Chunk = 64

// Chunks yields ns as arguments of a statement with so many Placeholders, the last number of them repeated:
// one statement serves all.
func Chunks(ns []int64) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		for some := range slices.Chunk(ns, Chunk) {
			args := make([]any, Chunk)
			for i := range args {
				args[i] = some[min(i, len(some)-1)]
			}
			if !yield(args) {
				return
			}
		}
	}
}
