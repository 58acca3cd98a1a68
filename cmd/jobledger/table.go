package main

import (
	"strings"

	"github.com/rivo/uniseg"

	"jobledger/cmd/jobledger/internal/render"
)

// column is one column of a table. The zero value beside its title is text that is never cut.
type column struct {
	title string
	right bool // for numbers
	state bool // colored by what the cell says
	least int  // columns to which a narrow terminal may cut it; 0: never
}

// table is for people; programs read --json. Whatever goes into a cell is escaped.
type table struct {
	columns []column
	rows    [][]string
}

// add appends a row, one cell for each column.
func (t *table) add(cells ...string) {
	row := make([]string, len(t.columns))
	for i, c := range cells {
		row[i] = render.Escape(c)
	}
	t.rows = append(t.rows, row)
}

// widths are the columns' widths such that a line fits into limit, if least allows it; 0 is no limit.
// The widest column that may shrink gives way first.
func (t *table) widths(limit int) []int {
	widths := make([]int, len(t.columns))
	total := 2 * (len(t.columns) - 1)
	for i, c := range t.columns {
		widths[i] = uniseg.StringWidth(c.title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
		total += widths[i]
	}
	for ; limit > 0 && total > limit; total-- {
		widest := -1
		for i, c := range t.columns {
			if c.least > 0 && widths[i] > c.least && (widest < 0 || widths[i] > widths[widest]) {
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

// printTable prints t with its header: cut to the terminal's width there, whole when piped, and no line
// ends in spaces.
func (p *program) printTable(t *table) error {
	widths := t.widths(p.width)
	header := make([]string, len(t.columns))
	for i, c := range t.columns {
		header[i] = c.title
	}
	for n, row := range append([][]string{header}, t.rows...) {
		var line strings.Builder
		for i, c := range t.columns {
			cell := render.Pad(render.Truncate(row[i], widths[i]), widths[i], c.right)
			if i == len(t.columns)-1 {
				cell = strings.TrimRight(cell, " ")
			}
			if i > 0 {
				line.WriteString("  ")
			}
			switch {
			case n == 0:
				cell = p.paint(render.Bold, cell)
			case c.state:
				cell = p.paint(render.StateStyles[row[i]], cell)
			}
			line.WriteString(cell)
		}
		if _, err := p.stdout.WriteString(strings.TrimRight(line.String(), " ") + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// printPairs prints names and values one below the other; a pair with an empty value is left out.
func (p *program) printPairs(pairs ...[2]string) error {
	left := 0
	for _, pair := range pairs {
		if pair[1] != "" {
			left = max(left, uniseg.StringWidth(pair[0]))
		}
	}
	for _, pair := range pairs {
		if pair[1] == "" {
			continue
		}
		value := render.Escape(pair[1])
		if pair[0] == "state" {
			value = p.paint(render.StateStyles[value], value)
		}
		if _, err := p.stdout.WriteString(render.Pad(pair[0], left, false) + "  " + value + "\n"); err != nil {
			return err
		}
	}
	return nil
}
