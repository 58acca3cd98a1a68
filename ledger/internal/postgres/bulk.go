package postgres

import (
	"fmt"
	"strings"

	"jobledger/ledger/internal/engine"
)

// typeNames are the types of the columns, of parameters that hold arrays.
var typeNames = map[engine.Type]string{
	engine.Integer: "int8", engine.Text: "text", engine.Bytes: "bytea", engine.JSON: "text",
}

// bulkKey names one text of a BulkStmt.
type bulkKey struct {
	stmt *engine.BulkStmt
	form form
}

// form is a way to write the text of a BulkStmt.
type form struct {
	many     bool   // rows
	checked  bool   // of a compare-and-swap: the caller compares the number of changed rows
	constant uint64 // of many rows: a bit for each column in which all rows have the same value
}

// bulkText returns the text of b for so many rows, and its arguments.
func (c *connection) bulkText(
	b *engine.BulkStmt, rows int, args []any, checked bool,
) (text string, bound []any) {
	f := form{many: rows > 1, checked: checked}
	bound = args[:b.Width()]
	if f.many {
		if rows >= engine.FewRows {
			f.constant = b.Constant(1, rows, args) // the first column distinguishes rows
		}
		bound = byColumn(b, rows, args, f.constant)
	}
	key := bulkKey{b, f}
	text, ok := c.bulkTexts[key]
	if !ok {
		if c.bulkTexts == nil || len(c.bulkTexts) > engine.MaxStatements {
			c.bulkTexts = make(map[bulkKey]string)
		}
		text = textOf(b, f)
		c.bulkTexts[key] = text
	}
	return text, bound
}

// textOf writes the text of b.
func textOf(b *engine.BulkStmt, f form) string {
	var arrays, names, values []string
	for i, t := range b.Types {
		param, name := fmt.Sprintf("$%d", i+1), fmt.Sprintf("c%d", i+1)
		value := param
		switch {
		case f.many && f.constant&(1<<i) == 0:
			arrays, names, value = append(arrays, param+"::"+typeNames[t]+"[]"), append(names, name), "v."+name
		case f.many:
			value += "::" + typeNames[t]
		}
		if t == engine.JSON {
			value += "::json"
		}
		values = append(values, value)
	}
	from := fmt.Sprintf("unnest(%s) AS v(%s)", strings.Join(arrays, ", "), strings.Join(names, ", "))
	if !b.CompareAndSwap {
		text := fmt.Sprintf("INSERT INTO %s (%s)", b.Table, strings.Join(b.Columns, ", "))
		if f.many {
			return text + fmt.Sprintf(" SELECT %s FROM %s", strings.Join(values, ", "), from) + b.OnConflict
		}
		return text + fmt.Sprintf(" VALUES (%s)", strings.Join(values, ", ")) + b.OnConflict
	}
	var set []string
	for i, name := range b.Columns[b.Compared:] {
		set = append(set, name+" = "+values[i+b.Compared])
	}
	update := fmt.Sprintf("UPDATE %s SET %s", b.Table, strings.Join(set, ", "))
	if f.many {
		update += " FROM " + from
	}
	update += fmt.Sprintf(" WHERE %[1]s.%[2]s = %[3]s AND %[1]s.%[4]s = %[5]s",
		b.Table, b.Columns[0], values[0], b.Columns[1], values[1])
	for i := 2; i < b.Compared; i++ {
		update += fmt.Sprintf(" AND %s.%s IS NOT DISTINCT FROM %s", b.Table, b.Columns[i], values[i])
	}
	switch {
	case f.checked:
		return update
	case f.many:
		return allOrNone(update, fmt.Sprintf("cardinality($1::%s[])", typeNames[b.Types[0]]), b.Table)
	}
	return allOrNone(update, "1", b.Table)
}

// allOrNone returns a statement that carries out update, and ends the transaction unless so many rows change.
func allOrNone(update, rows, table string) string {
	return fmt.Sprintf("WITH done AS (%s RETURNING 1) SELECT CASE WHEN count(*) = %s THEN 1 "+
		"ELSE give_up('rolled back, since a row of %s has changed meanwhile') END FROM done", update, rows, table)
}

// byColumn turns rows into an array per column; a constant column stays a single value.
func byColumn(b *engine.BulkStmt, rows int, args []any, constant uint64) []any {
	bound := make([]any, b.Width())
	for i, t := range b.Types {
		if constant&(1<<i) != 0 {
			bound[i] = args[i]
			continue
		}
		switch t {
		case engine.Integer:
			bound[i] = column[int64](rows, args[i:], b.Width())
		case engine.Text, engine.JSON:
			bound[i] = column[string](rows, args[i:], b.Width())
		case engine.Bytes:
			values := make([][]byte, rows)
			for r := range values {
				values[r], _ = args[i+r*b.Width()].([]byte)
			}
			bound[i] = values
		}
	}
	return bound
}

// column takes every width'th of args, as a slice of values, or of pointers if one of them is null.
func column[T int64 | string](rows int, args []any, width int) any {
	values := make([]T, rows)
	null := false
	for r := range values {
		v, ok := args[r*width].(T)
		if n, small := args[r*width].(int); small { // which would become a null
			v, ok = any(int64(n)).(T)
		}
		values[r], null = v, null || !ok
	}
	if !null {
		return values
	}
	pointers := make([]*T, rows)
	for r := range pointers {
		if args[r*width] != nil {
			pointers[r] = &values[r]
		}
	}
	return pointers
}
