package cli

import (
	"github.com/rivo/uniseg"

	"jobledger/cmd/jobledger/internal/words"
)

// Tables are laid out by package words.
type (
	Table  = words.Table
	Column = words.Column
)

// PrintTable prints t with its header. On a terminal columns are dropped until it fits; in a pipe it is
// complete.
func (p *Program) PrintTable(t *Table) error {
	for line := range t.Lines(p.Width, p.Paint) {
		if _, err := p.Stdout.WriteString(line + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// PrintPairs prints a line for each pair of a name and a value, but none for an empty value.
func (p *Program) PrintPairs(pairs ...[2]string) error {
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
		value := words.Escape(pair[1])
		if pair[0] == "state" {
			value = p.Paint(words.StateStyles[value], value)
		}
		if _, err := p.Stdout.WriteString(words.Pad(pair[0], left, false) + "  " + value + "\n"); err != nil {
			return err
		}
	}
	return nil
}
