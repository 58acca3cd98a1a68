package ledger

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Type is the type of a column.
type Type int

// The types of columns.
const (
	Integer Type = iota // 64 bits
	Text
	Bytes
	JSON // kept as the text that was written
)

// Types says which columns of a table are not Integer.
type Types map[string]Type

// List is a statement that takes one row or many. Rows wait in a buffer per List and keep their order; lists are
// sent in the order in which they were first used. Make one and keep it: it is its own identity.
type List struct {
	table    string
	columns  []string // of an update, the first two are the row's number and the seq at which it must stand
	types    []Type
	conflict string // of an insert, what follows on its rows
	exact    bool   // an update: each row must be there, or it is a conflict

	width    int
	sqlite   [len(listSizes)]atomic.Pointer[string] // nil: not needed yet
	postgres sync.Map                               // of string by form
}

// NewUpsert returns a List of rows to insert; of one that is there already, by its column key, the others are replaced.
func NewUpsert(table, key string, types Types, columns ...string) *List {
	var set []string
	for _, name := range columns {
		if name != key {
			set = append(set, name+" = excluded."+name)
		}
	}
	return newList(table, columns, types, fmt.Sprintf(" ON CONFLICT (%s) DO UPDATE SET %s", key, strings.Join(set, ", ")), false)
}

// NewUpdate returns a List that changes columns of rows that are there: a compare-and-swap. A row of it begins with the
// value of the column key and of the column expected, as they must be.
func NewUpdate(table, key, expected string, types Types, columns ...string) *List {
	return newList(table, append([]string{key, expected}, columns...), types, "", true)
}

func newList(table string, columns []string, types Types, conflict string, exact bool) *List {
	l := &List{table: table, columns: columns, conflict: conflict, exact: exact, width: len(columns)}
	for _, name := range columns {
		l.types = append(l.types, types[name])
	}
	return l
}

// listSizes are the numbers of rows for which a List has a statement on SQLite: each for the few that a handful of
// workers writes at a time. Beyond 64 rows a longer list gains nothing and costs memory.
var listSizes = [...]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 32, 40, 48, 56, 64}

// text is the statement for the size'th of listSizes on SQLite.
func (l *List) text(size int) string {
	if text := l.sqlite[size].Load(); text != nil {
		return *text
	}
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", l.width), ",") + ")"
	rows := strings.TrimSuffix(strings.Repeat(row+",", listSizes[size]), ",")
	var text string
	switch {
	case !l.exact:
		text = fmt.Sprintf("INSERT INTO %s (%s) VALUES %s%s", l.table, strings.Join(l.columns, ", "), rows, l.conflict)
	case size == 0:
		text = fmt.Sprintf("UPDATE %s SET %s WHERE %s = ?1 AND %s = ?2", l.table, l.set("?%d"), l.columns[0], l.columns[1])
	default:
		text = fmt.Sprintf("UPDATE %[1]s SET %[2]s FROM (VALUES %[3]s) AS v WHERE %[1]s.%[4]s = v.column1 AND %[1]s.%[5]s = v.column2",
			l.table, l.set("v.column%d"), rows, l.columns[0], l.columns[1])
	}
	l.sqlite[size].Store(&text)
	return text
}

// Statements returns what is sent to SQLite for one row, and for as many as one statement takes.
func (l *List) Statements() (one, many string) { return l.text(0), l.text(len(listSizes) - 1) }

// set is what an update sets; value names the one with a number.
func (l *List) set(value string) string {
	var set []string
	for i, name := range l.columns[2:] {
		set = append(set, name+" = "+fmt.Sprintf(value, i+3))
	}
	return strings.Join(set, ", ")
}

// Inserts is how rows are inserted into one table. A value that is nil costs as much as another on its way, so there
// is a List for each set of columns that are not null.
type Inserts struct {
	table   string
	columns []string
	types   Types
	ordered bool     // rows are sent in the order in which they come, whatever their columns
	lists   sync.Map // of *List by the bits of the columns
}

// NewInserts returns the Inserts of a table with up to 64 columns. Make it once and keep it.
func NewInserts(table string, types Types, columns ...string) *Inserts {
	return &Inserts{table: table, columns: columns, types: types}
}

func (in *Inserts) list(columns uint64) *List {
	if l, ok := in.lists.Load(columns); ok {
		return l.(*List)
	}
	var names []string
	for i, name := range in.columns {
		if columns&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	l, _ := in.lists.LoadOrStore(columns, newList(in.table, names, in.types, "", false))
	return l.(*List)
}
