package cli

import (
	"fmt"
	"strings"
	"time"

	"jobledger/ledger/event"

	"github.com/rivo/uniseg"

	"jobledger/cmd/jobledger/internal/words"
)

// Flush writes the buffer of Stdout.
func (p *Program) Flush() error { return p.Stdout.Flush() }

// Message prints a line on Stderr that begins with the program's name. It does not touch Stdout, so
// goroutines may call it.
func (p *Program) Message(format string, args ...any) {
	fmt.Fprintf(p.Stderr, "%s: %s\n", ProgramName, words.EscapeLines(words.Shorten(fmt.Sprintf(format,
		args...))))
}

// MessageAfter is [Program.Message] about what was printed, so it comes after that.
func (p *Program) MessageAfter(format string, args ...any) error {
	err := p.Flush()
	p.Message(format, args...)
	return err
}

// PrintLine prints one line of data.
func (p *Program) PrintLine(text string) error {
	_, err := fmt.Fprintln(p.Stdout, words.Escape(text))
	return err
}

// PrintRaw prints bytes unchanged, for a payload that goes to a file or another program. On a terminal it
// escapes control characters.
func (p *Program) PrintRaw(b []byte) error {
	if p.StdoutTerminal {
		b = []byte(words.EscapeLines(string(b)))
	}
	_, err := p.Stdout.Write(b)
	return err
}

// PrintJSON prints v as one line of JSON. Characters that could harm a terminal are written as \u sequences.
func (p *Program) PrintJSON(v any) error {
	line, err := words.JSONLine(v)
	if err == nil {
		_, err = p.Stdout.Write(line)
	}
	return err
}

// JSONOnly prints v with --json, and nothing otherwise.
func (p *Program) JSONOnly(v any) error {
	if !p.JSON {
		return nil
	}
	return p.PrintJSON(v)
}

// JSONOrLine prints v with --json, and a line of data otherwise.
func (p *Program) JSONOrLine(v any, text string) error {
	if p.JSON {
		return p.PrintJSON(v)
	}
	return p.PrintLine(text)
}

// PrintJSONLines prints each of list as one line of JSON.
func PrintJSONLines[T any](p *Program, list []T) error {
	return PrintJSONOf(p, list, func(v T) T { return v })
}

// PrintJSONOf applies of to each element of list, and prints the results as lines of JSON.
func PrintJSONOf[T, V any](p *Program, list []T, of func(T) V) error {
	for _, v := range list {
		if err := p.PrintJSON(of(v)); err != nil {
			return err
		}
	}
	return nil
}

// PrintRows prints each element of list as a line of JSON with --json, and all as the rows of t otherwise.
func PrintRows[T any](p *Program, t *Table, list []T, of func(T) any, cells func(T) []string) error {
	if p.JSON {
		return PrintJSONOf(p, list, of)
	}
	for _, v := range list {
		t.Add(cells(v)...)
	}
	return p.PrintTable(t)
}

// PrintLines prints lines of data.
func (p *Program) PrintLines(lines []string) error {
	for _, line := range lines {
		if err := p.PrintLine(line); err != nil {
			return err
		}
	}
	return nil
}

// PrintWrapped prints lines of data, on a terminal wrapped to its width.
func (p *Program) PrintWrapped(lines ...string) error {
	var all []string
	for _, line := range lines {
		parts := []string{line}
		if p.Width > 0 {
			parts = words.Wrap(line, max(p.Width-4, 20))
		}
		for i, part := range parts {
			if i > 0 {
				part = "    " + part
			}
			all = append(all, part)
		}
	}
	return p.PrintLines(all)
}

// Paint colors text, which must be escaped and padded, if Stdout takes colors.
func (p *Program) Paint(s words.Style, text string) string {
	if !p.Color || s == words.Plain || strings.TrimSpace(text) == "" {
		return text
	}
	body := strings.TrimRight(text, " ")
	return "\x1b[" + string(s) + "m" + body + "\x1b[0m" + text[len(body):]
}

// Local returns t in the zone in which times are shown.
func (p *Program) Local(t time.Time) time.Time { return t.In(p.Now().Location()) }

// Describe is [words.Describe] in the zone in which times are shown.
func (p *Program) Describe(e event.Event) string { return words.Describe(e, p.Now().Location()) }

// widthOf returns how wide columns are with the spaces between them.
func widthOf(columns []string) int { return uniseg.StringWidth(strings.Join(columns, "  ")) }

// PrintEvent prints the columns of a listing, each in the style of its index, and then text. On a terminal
// text is wrapped, to the right of the columns if there is room, otherwise below them. Columns that do not
// fit are put below too. In a pipe it is one line.
func (p *Program) PrintEvent(columns []string, paints []words.Style, text string) error {
	for n := len(columns) - 1; p.Width > 0 && n > 0 && widthOf(columns) > p.Width; n-- {
		text = strings.TrimSpace(columns[n]) + " " + text
		columns = columns[:n]
	}
	var plain, line strings.Builder
	for i, c := range columns {
		plain.WriteString(c + "  ")
		line.WriteString(p.Paint(paints[i], c) + "  ")
	}
	text = words.Escape(text)
	indent := uniseg.StringWidth(plain.String())
	if p.Width == 0 || indent+uniseg.StringWidth(text) <= p.Width {
		_, err := p.Stdout.WriteString(strings.TrimRight(line.String()+text, " ") + "\n")
		return err
	}
	lines := words.Wrap(text, p.Width-indent)
	if p.Width-indent < 60 {
		indent = 4
		lines = append([]string{""}, words.Wrap(text, max(p.Width-indent, 20))...)
	}
	for i, l := range lines {
		if i == 0 {
			l = strings.TrimRight(line.String()+l, " ")
		} else {
			l = strings.Repeat(" ", indent) + l
		}
		if _, err := p.Stdout.WriteString(l + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// StartProgress starts a bar on Stderr, if that is a terminal: see [StartProgress].
func (p *Program) StartProgress(what string, total int64) *Progress {
	if !p.StderrTerminal {
		return nil
	}
	return StartProgress(p.Stderr, what, total)
}

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
