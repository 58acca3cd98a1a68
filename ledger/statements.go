package ledger

import "jobledger/ledger/internal/engine"

// Rows are the rows of a query. The caller closes them, even after an error.
type Rows = engine.Rows

// BulkStmt is a statement that writes one row or many at once. Make each one once and keep it: a Tx buffers
// rows per BulkStmt.
type BulkStmt = engine.BulkStmt

// SparseInsert inserts rows into a table of which many columns are null.
type SparseInsert = engine.SparseInsert

// ColumnTypes names the columns of a table that are not integers.
type ColumnTypes = engine.Types

// The types of columns other than integers.
const (
	TextColumn  = engine.Text
	BytesColumn = engine.Bytes
	JSONColumn  = engine.JSON
)

// NewUpsert returns a BulkStmt that inserts rows. If a row with the same key exists, it replaces the other
// columns.
func NewUpsert(table, key string, types ColumnTypes, columns ...string) *BulkStmt {
	return engine.NewUpsert(table, key, types, columns...)
}

// NewCompareAndSwap returns a BulkStmt that updates columns of existing rows. A row of it begins with the
// values that the compared columns must have: the key, a version, and others, which may be null.
func NewCompareAndSwap(table string, compared []string, types ColumnTypes, columns ...string) *BulkStmt {
	return engine.NewCompareAndSwap(table, compared, types, columns...)
}

// NewSparseInsert returns the SparseInsert of a table with up to 64 columns.
func NewSparseInsert(table string, types ColumnTypes, columns ...string) *SparseInsert {
	return engine.NewSparseInsert(table, types, columns...)
}
