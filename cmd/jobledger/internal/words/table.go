package words

import (
	"iter"
	"strings"

	"github.com/rivo/uniseg"
)

// Column is one column of a table. By default it holds text that is never truncated.
type Column struct {
	Title string
	Right bool // for numbers
	State bool // colored by what the cell says
	Least int  // columns to which a narrow terminal may cut it, when no column is left to drop; 0: never
	Drop  int  // a narrow terminal drops the column with the highest Drop first; 0: never
}

// Table is output for people; programs read --json. Its cells are escaped.
type Table struct {
	Columns []Column
	Wide    bool // every column at its full width, even if a line is wider than the terminal
	rows    [][]string
}

// Add appends a row, one cell for each column.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(t.Columns))
	for i, c := range cells {
		row[i] = Escape(c)
	}
	t.rows = append(t.rows, row)
}

// Rows returns the rows, each with a cell for each column.
func (t *Table) Rows() [][]string { return t.rows }

// Cut removes all rows but the first n, and returns the first of those removed.
func (t *Table) Cut(n int) (row []string) {
	row, t.rows = t.rows[n], t.rows[:n]
	return row
}

// Widened returns t with all columns at their full width if wide says so.
func (t *Table) Widened(wide bool) *Table {
	t.Wide = wide
	return t
}

// widths returns the columns' widths, 0 for a dropped column. They fit into limit (0: none) as far as Drop
// and Least allow: columns are dropped first; then the widest column that may shrink shrinks.
func (t *Table) widths(limit int) []int {
	widths := make([]int, len(t.Columns))
	total := -2
	for i, c := range t.Columns {
		widths[i] = uniseg.StringWidth(c.Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
		total += widths[i] + 2
	}
	dropped := make([]bool, len(t.Columns))
	for limit > 0 && total > limit {
		drop := -1
		for i, c := range t.Columns {
			if c.Drop > 0 && !dropped[i] && (drop < 0 || c.Drop > t.Columns[drop].Drop) {
				drop = i
			}
		}
		if drop < 0 {
			break
		}
		dropped[drop] = true
		total -= widths[drop] + 2
		widths[drop] = 0
	}
	for ; limit > 0 && total > limit; total-- {
		widest := -1
		for i, c := range t.Columns {
			if c.Least > 0 && !dropped[i] && widths[i] > c.Least && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// Lines yields the header and the rows. Columns are dropped and cut until they fit into width, the columns of
// a terminal; 0 means a pipe, for which the table is complete. paint colors a cell. No line ends in spaces.
func (t *Table) Lines(width int, paint func(Style, string) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if t.Wide {
			width = 0
		}
		widths := t.widths(width)
		header, last := t.header(widths)
		for n, row := range append([][]string{header}, t.rows...) {
			var line strings.Builder
			for i, c := range t.Columns {
				if widths[i] == 0 {
					continue
				}
				cell := Pad(Truncate(row[i], widths[i]), widths[i], c.Right)
				if i == last {
					cell = strings.TrimRight(cell, " ")
				}
				if line.Len() > 0 {
					line.WriteString("  ")
				}
				switch {
				case n == 0:
					cell = paint(Bold, cell)
				case c.State:
					cell = paint(StateStyles[row[i]], cell)
				}
				line.WriteString(cell)
			}
			if !yield(strings.TrimRight(line.String(), " ")) {
				return
			}
		}
	}
}

// header returns the titles, and the index of the last column that is not dropped.
func (t *Table) header(widths []int) (titles []string, last int) {
	for i, c := range t.Columns {
		titles = append(titles, c.Title)
		if widths[i] > 0 {
			last = i
		}
	}
	return titles, last
}
