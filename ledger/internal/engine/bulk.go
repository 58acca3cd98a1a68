package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Type is the type of a column.
type Type int

// The types of columns.
const (
	Integer Type = iota // 64 bits
	Text
	Bytes
	JSON // stored as the text that was written
)

// Types names the columns of a table that are not Integer.
type Types map[string]Type

// BulkStmt is a statement that writes one row or many at once: an insert, an upsert or a compare-and-swap
// update. A Store buffers the rows per BulkStmt and keeps their order. Make each one once and keep it:
// buffers and prepared statements are found by its address. Each engine writes its text in its own words.
type BulkStmt struct {
	Table      string
	Columns    []string // of a compare-and-swap, the first are the key and the expected values
	Types      []Type   // of the columns
	OnConflict string   // of an upsert, the clause after its rows
	// CompareAndSwap marks an update: each row must exist with its expected value.
	CompareAndSwap bool
	// Compared is how many of the first columns a compare-and-swap compares. From the third on they may be null.
	Compared int
}

// NewUpsert returns a BulkStmt that inserts rows. If a row with the same key exists, it replaces the other
// columns.
func NewUpsert(table, key string, types Types, columns ...string) *BulkStmt {
	var set []string
	for _, name := range columns {
		if name != key {
			set = append(set, name+" = excluded."+name)
		}
	}
	b := NewInsert(table, types, columns...)
	b.OnConflict = fmt.Sprintf(" ON CONFLICT (%s) DO UPDATE SET %s", key, strings.Join(set, ", "))
	return b
}

// NewCompareAndSwap returns a BulkStmt that updates columns of existing rows. A row of it begins with the
// values that the compared columns must have: the key, a version, and others, which may be null.
func NewCompareAndSwap(table string, compared []string, types Types, columns ...string) *BulkStmt {
	b := NewInsert(table, types, append(slices.Clip(compared), columns...)...)
	b.CompareAndSwap, b.Compared = true, len(compared)
	return b
}

// NewInsert returns a BulkStmt that inserts rows.
func NewInsert(table string, types Types, columns ...string) *BulkStmt {
	b := &BulkStmt{Table: table, Columns: columns}
	for _, name := range columns {
		b.Types = append(b.Types, types[name])
	}
	return b
}

// Width returns the number of values of one row.
func (b *BulkStmt) Width() int { return len(b.Columns) }

// FewRows may have equal values by chance: to leave these out would make too many different texts.
const FewRows = 16

// Constant finds the columns, after the first few, in which all rows of args have the same value: a bit for
// each.
func (b *BulkStmt) Constant(first, rows int, args []any) (columns uint64) {
	width := b.Width()
	for i := first; i < width; i++ {
		if b.Types[i] == Bytes {
			continue
		}
		r := 1
		for r < rows && args[r*width+i] == args[i] {
			r++
		}
		if r == rows {
			columns |= 1 << i
		}
	}
	return columns
}

// SparseInsert inserts rows into one table of which many columns are null. Sending a null costs as much as
// sending a value, so it has a BulkStmt for each set of columns that are not null.
type SparseInsert struct {
	table   string
	columns []string
	types   Types
	ordered bool
	stmts   sync.Map // of *BulkStmt by the bits of the columns
}

// NewSparseInsert returns the SparseInsert of a table with up to 64 columns. Make it once and keep it.
func NewSparseInsert(table string, types Types, columns ...string) *SparseInsert {
	return &SparseInsert{table: table, columns: columns, types: types}
}

// NewOrderedInsert is NewSparseInsert for a table whose rows are inserted in the order in which they come,
// whatever their columns.
func NewOrderedInsert(table string, types Types, columns ...string) *SparseInsert {
	return &SparseInsert{table: table, columns: columns, types: types, ordered: true}
}

// Ordered reports whether the order of the rows counts.
func (in *SparseInsert) Ordered() bool { return in.ordered }

// Stmt returns the BulkStmt for the values that are not nil, which it appends to args.
func (in *SparseInsert) Stmt(values, args []any) (*BulkStmt, []any) {
	var columns uint64
	for i, v := range values {
		if v != nil {
			columns |= 1 << i
			args = append(args, v)
		}
	}
	return in.stmt(columns), args
}

func (in *SparseInsert) stmt(columns uint64) *BulkStmt {
	if b, ok := in.stmts.Load(columns); ok {
		return b.(*BulkStmt)
	}
	var names []string
	for i, name := range in.columns {
		if columns&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	b, _ := in.stmts.LoadOrStore(columns, NewInsert(in.table, in.types, names...))
	return b.(*BulkStmt)
}
