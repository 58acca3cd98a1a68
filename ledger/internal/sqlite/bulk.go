package sqlite

import (
	"fmt"
	"strings"

	"jobledger/ledger/internal/engine"
)

// MaxBulkRows is the number of rows of the largest statement. More gain nothing and cost memory.
const MaxBulkRows = 64

// bulkSizes are the numbers of rows for which a BulkStmt has a statement: every small number, because a
// handful of workers writes that many at a time.
var bulkSizes = [...]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
	24, 32, 40, 48, 56, MaxBulkRows}

// bulkKey names the text of a BulkStmt for one of bulkSizes.
type bulkKey struct {
	stmt     *engine.BulkStmt
	size     int
	constant uint64 // a bit for each column in which all rows have the same value
}

// bulk returns the text of b for the rows in args, which are as many as the size'th of bulkSizes, and what to
// bind. To bind a value costs half as much as to insert it, so what all rows have in common is bound once.
func (c *connection) bulk(b *engine.BulkStmt, size int, args []any) (text string, bound []any) {
	key := bulkKey{stmt: b, size: size}
	bound = args
	if rows := bulkSizes[size]; rows >= engine.FewRows {
		if key.constant = b.Constant(keyColumns(b), rows, args); key.constant != 0 {
			bound = c.bindOnce(b, args, key.constant)
		}
	}
	text, ok := c.bulkTexts[key]
	if !ok {
		if len(c.bulkTexts) > engine.MaxStatements {
			clear(c.bulkTexts)
		}
		text = bulkText(b, bulkSizes[size], key.constant)
		c.bulkTexts[key] = text
	}
	return text, bound
}

// keyColumns returns how many columns are never constant.
func keyColumns(b *engine.BulkStmt) int {
	if b.CompareAndSwap {
		return b.Compared
	}
	return 1
}

// bindOnce returns args without the values of the constant columns in all rows but the first. A
// compare-and-swap has them in front. The result is valid until the next call.
func (c *connection) bindOnce(b *engine.BulkStmt, args []any, constant uint64) []any {
	width := b.Width()
	c.bound = c.bound[:0]
	for i, v := range args[:width] {
		if constant&(1<<i) != 0 || !b.CompareAndSwap {
			c.bound = append(c.bound, v)
		}
	}
	rest := args
	if !b.CompareAndSwap {
		rest = args[width:]
	}
	for i, v := range rest {
		if constant&(1<<(i%width)) == 0 {
			c.bound = append(c.bound, v)
		}
	}
	return c.bound
}

// BulkText returns the text of b for so many rows.
func BulkText(b *engine.BulkStmt, rows int) string { return bulkText(b, rows, 0) }

// bulkText returns the text of b for so many rows, in which the constant columns are bound once.
func bulkText(b *engine.BulkStmt, rows int, constant uint64) string {
	if b.CompareAndSwap {
		return updateText(b, rows, constant)
	}
	later := make([]string, b.Width()) // rows than the first
	for i := range later {
		later[i] = "?"
		if constant&(1<<i) != 0 {
			later[i] = fmt.Sprintf("?%d", i+1)
		}
	}
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)%s%s", b.Table, strings.Join(b.Columns, ", "),
		placeholders(b.Width()), strings.Repeat(",("+strings.Join(later, ",")+")", rows-1), b.OnConflict)
}

func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

// updateText is bulkText for a compare-and-swap.
func updateText(b *engine.BulkStmt, rows int, constant uint64) string {
	var set []string
	width := b.Compared // of the rows
	for i, name := range b.Columns[b.Compared:] {
		value := "?"
		switch {
		case rows == 1:
			value = fmt.Sprintf("?%d", i+b.Compared+1)
		case constant&(1<<(i+b.Compared)) == 0:
			width++
			value = fmt.Sprintf("v.column%d", width)
		}
		set = append(set, name+" = "+value)
	}
	if rows == 1 {
		text := fmt.Sprintf("UPDATE %s SET %s WHERE %s = ?1 AND %s = ?2",
			b.Table, strings.Join(set, ", "), b.Columns[0], b.Columns[1])
		for i := 2; i < b.Compared; i++ {
			text += fmt.Sprintf(" AND %s IS ?%d", b.Columns[i], i+1)
		}
		return text
	}
	values := strings.TrimSuffix(strings.Repeat("("+placeholders(width)+"),", rows), ",")
	text := fmt.Sprintf("UPDATE %[1]s SET %[2]s FROM (VALUES %[3]s) AS v "+
		"WHERE %[1]s.%[4]s = v.column1 AND %[1]s.%[5]s = v.column2",
		b.Table, strings.Join(set, ", "), values, b.Columns[0], b.Columns[1])
	for i := 2; i < b.Compared; i++ {
		text += fmt.Sprintf(" AND %s.%s IS v.column%d", b.Table, b.Columns[i], i+1)
	}
	return text
}

// PutRows sends statements of the sizes that there are.
func (c *connection) PutRows(b *engine.BulkStmt, rows int, args []any) error {
	for rows > 0 {
		size := len(bulkSizes) - 1
		for bulkSizes[size] > rows {
			size--
		}
		n := b.Width() * bulkSizes[size]
		changed, err := c.Run(c.bulk(b, size, args[:n]))
		if err != nil {
			return err
		}
		if b.CompareAndSwap && changed != int64(bulkSizes[size]) {
			return fmt.Errorf("%w: %d of %d rows were as expected", engine.ErrConflict, changed, bulkSizes[size])
		}
		args, rows = args[n:], rows-bulkSizes[size]
	}
	return nil
}

// PutRow implements engine.Connection.
func (c *connection) PutRow(b *engine.BulkStmt, args []any) error { return c.PutRows(b, 1, args) }

// Push implements engine.Connection: PutRows has written everything.
func (c *connection) Push() error { return nil }
