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
	stmt *engine.BulkStmt
	size int
}

// bulkText returns the text of b for the size'th of bulkSizes.
func (c *connection) bulkText(b *engine.BulkStmt, size int) string {
	key := bulkKey{b, size}
	text, ok := c.bulkTexts[key]
	if !ok {
		text = BulkText(b, bulkSizes[size])
		c.bulkTexts[key] = text
	}
	return text
}

// BulkText returns the text of b for so many rows.
func BulkText(b *engine.BulkStmt, rows int) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", b.Width()), ",") + ")"
	values := strings.TrimSuffix(strings.Repeat(row+",", rows), ",")
	switch {
	case !b.CompareAndSwap:
		columns := strings.Join(b.Columns, ", ")
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s%s", b.Table, columns, values, b.OnConflict)
	case rows == 1:
		return fmt.Sprintf("UPDATE %s SET %s WHERE %s = ?1 AND %s = ?2",
			b.Table, setClause(b, "?%d"), b.Columns[0], b.Columns[1])
	}
	return fmt.Sprintf("UPDATE %[1]s SET %[2]s FROM (VALUES %[3]s) AS v "+
		"WHERE %[1]s.%[4]s = v.column1 AND %[1]s.%[5]s = v.column2",
		b.Table, setClause(b, "v.column%d"), values, b.Columns[0], b.Columns[1])
}

// setClause lists what a compare-and-swap sets; value is the format of the value with a given number.
func setClause(b *engine.BulkStmt, value string) string {
	var set []string
	for i, name := range b.Columns[2:] {
		set = append(set, name+" = "+fmt.Sprintf(value, i+3))
	}
	return strings.Join(set, ", ")
}

// PutRows sends statements of the sizes that there are.
func (c *connection) PutRows(b *engine.BulkStmt, rows int, args []any) error {
	for rows > 0 {
		size := len(bulkSizes) - 1
		for bulkSizes[size] > rows {
			size--
		}
		n := b.Width() * bulkSizes[size]
		changed, err := c.Run(c.bulkText(b, size), args[:n])
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
