package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"jobledger/ledger"

	"github.com/rivo/uniseg"

	"jobledger/cmd/jobledger/internal/render"
)

// flush hands what stdout has buffered to its reader.
func (p *program) flush() error { return p.stdout.Flush() }

// message tells the user something on stderr, in a line that begins with the program's name. It leaves
// stdout alone, so that goroutines may call it.
func (p *program) message(format string, args ...any) {
	fmt.Fprintf(p.stderr, "%s: %s\n", programName, render.EscapeLines(render.Shorten(fmt.Sprintf(format, args...))))
}

// printLine prints one line of data.
func (p *program) printLine(text string) error {
	_, err := fmt.Fprintln(p.stdout, render.Escape(text))
	return err
}

// printRaw prints bytes as they are, for a payload that goes to a file or another program. On a terminal
// their control characters are escaped.
func (p *program) printRaw(b []byte) error {
	if p.stdoutTerminal {
		b = []byte(render.EscapeLines(string(b)))
	}
	_, err := p.stdout.Write(b)
	return err
}

// printJSON prints v as one line. Characters that a terminal or a reader could stumble over are written as
// \u sequences, which mean the same.
func (p *program) printJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	line := b.Bytes()
	if !render.IsASCII(line) {
		line = render.EscapeJSON(line)
	}
	_, err := p.stdout.Write(line)
	return err
}

// paint colors text if stdout takes colors. It must already be escaped and padded.
func (p *program) paint(s render.Style, text string) string {
	if !p.color || s == render.Plain || strings.TrimSpace(text) == "" {
		return text
	}
	body := strings.TrimRight(text, " ")
	return "\x1b[" + string(s) + "m" + body + "\x1b[0m" + text[len(body):]
}

// local is t in the zone in which times are shown.
func (p *program) local(t time.Time) time.Time { return t.In(p.now().Location()) }

// describe says in one line what e records, with times in the zone in which times are shown.
func (p *program) describe(e ledger.Event) string { return render.Describe(e, p.now().Location()) }

// eventTime is the time of an event in a listing: to the millisecond, with its offset, fit for a flag.
func (p *program) eventTime(e ledger.Event) string {
	return p.local(e.At).Format("2006-01-02 15:04:05.000-07:00")
}

// printEvent prints the fixed columns of a listing and then text, which is wrapped on a terminal: beside the columns
// where there is room, else below them. Piped, it is one line. paints color the columns, in their order.
func (p *program) printEvent(columns []string, paints []render.Style, text string) error {
	var plain, line strings.Builder
	for i, c := range columns {
		plain.WriteString(c + "  ")
		line.WriteString(p.paint(paints[i], c) + "  ")
	}
	text = render.Escape(text)
	indent := uniseg.StringWidth(plain.String())
	if p.width == 0 || indent+uniseg.StringWidth(text) <= p.width {
		_, err := p.stdout.WriteString(strings.TrimRight(line.String()+text, " ") + "\n")
		return err
	}
	lines := render.Wrap(text, p.width-indent)
	if p.width-indent < 60 {
		indent = 4
		lines = append([]string{""}, render.Wrap(text, max(p.width-indent, 20))...)
	}
	for i, l := range lines {
		if i == 0 {
			l = strings.TrimRight(line.String()+l, " ")
		} else {
			l = strings.Repeat(" ", indent) + l
		}
		if _, err := p.stdout.WriteString(l + "\n"); err != nil {
			return err
		}
	}
	return nil
}
