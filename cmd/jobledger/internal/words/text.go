package words

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"jobledger/ledger/event"
	"jobledger/projection/status"

	"github.com/rivo/uniseg"
)

func IsASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x7f {
			return false
		}
	}
	return true
}

// EscapeJSON escapes such characters in encoded JSON, where they can only occur within strings. It returns
// line itself if it is ASCII.
func EscapeJSON(line []byte) []byte {
	if IsASCII(line) {
		return line
	}
	var b bytes.Buffer
	for _, r := range string(line) {
		if r >= 0x7f && Harmful(r) {
			if r > 0xffff {
				hi, lo := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
				fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
				continue
			}
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.Bytes()
}

// Harmful says whether r may move the cursor, turn the direction of writing or hide.
func Harmful(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		return true
	case r == 0x2028, r == 0x2029, r == 0xfeff, r == 0x200b, 0x2060 <= r && r <= 0x2064:
		return true
	}
	return 0xe0000 <= r && r <= 0xe007f // tags
}

// Escape makes text fit for one line of a terminal: what could do harm there becomes \x1b, \n, \u202e.
func Escape(text string) string { return escapeExcept(text, "") }

// EscapeLines is escape for text of more than one line; it leaves line feeds and tabs.
func EscapeLines(text string) string { return escapeExcept(text, "\n\t") }

func escapeExcept(text, harmless string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError || Harmful(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case !Harmful(r) || strings.ContainsRune(harmless, r):
			b.WriteString(text[:n])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.String()
}

// Style is a color of the terminal.
type Style string

const (
	Plain  Style = ""
	Red    Style = "31"
	green  Style = "32"
	Yellow Style = "33"
	blue   Style = "34"
	cyan   Style = "36"
	Gray   Style = "90"
	Bold   Style = "1"
)

// StateStyles are the colors of job states, claim outcomes and events.
var StateStyles = map[string]Style{
	"queued": blue, "claimed": cyan, "running": cyan, "succeeded": green, "failed": Red, "cancelled": Gray,
	"released": Yellow, "reclaimed": Yellow, "refused": Yellow, "retried": Yellow, "paused": Yellow,
	"blocked": Yellow, "unblocked": blue, "ok": green,
	"working": cyan, "silent": Red, "stopped": Gray,
}

// Pad fills text up to width columns.
func Pad(text string, width int, right bool) string {
	space := strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
	if right {
		return space + text
	}
	return text + space
}

// Truncate cuts text to width columns between two characters as people see them, and ends it in "…".
func Truncate(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	left := width - 1
	for g := uniseg.NewGraphemes(text); left > 0 && g.Next(); {
		if left -= g.Width(); left < 0 {
			break
		}
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

// Wrap breaks text between words into lines of at most width columns, longer only for a longer word.
func Wrap(text string, width int) []string {
	var lines []string
	used := 0 // columns of the last line
	for _, word := range strings.Fields(text) {
		columns := uniseg.StringWidth(word)
		if len(lines) > 0 && used+1+columns <= width {
			lines[len(lines)-1] += " " + word
			used += 1 + columns
			continue
		}
		lines, used = append(lines, word), columns
	}
	return lines
}

// Shorten cuts the middle out of a text that would fill the screen, such as one that quotes a file taken for
// an argument: the error is before it, and what is allowed after it.
func Shorten(text string) string {
	const most, kept = 2000, 500
	if len(text) <= most {
		return text
	}
	begin, end := strings.ToValidUTF8(text[:kept], ""), strings.ToValidUTF8(text[len(text)-kept:], "")
	return fmt.Sprintf("%s … (%d bytes left out) … %s", begin, len(text)-2*kept, end)
}

// Plural returns one if n is 1, else many.
func Plural(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// ErrorText says with which error code an attempt failed: "error smtp"; "error" where the code says no more.
func ErrorText(code string) string {
	if code == "" || code == "error" {
		return "error"
	}
	return "error " + code
}

// ReasonOrNone is the reason given, or the words for none.
func ReasonOrNone(reason string) string {
	return cmp.Or(reason, "no reason given")
}

// Of applies of to each element of list.
func Of[T, V any](list []T, of func(T) V) (made []V) {
	for _, one := range list {
		made = append(made, of(one))
	}
	return made
}

// WorkerNames lists the names of up to five workers and the number of the others.
func WorkerNames(workers []status.Worker) string {
	const most = 5
	names := Of(workers[:min(most, len(workers))], func(w status.Worker) string { return w.Name })
	if more := len(workers) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// QuoteShell returns text as one word for a POSIX shell.
func QuoteShell(text string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("/._-+:,@%=", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !safe(r) }) < 0 && text[0] != '-' {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// CommandLine is a command as a line for a POSIX shell.
func CommandLine(args []string) string {
	return strings.Join(Of(args, func(arg string) string {
		if strings.HasPrefix(arg, "-") && QuoteShell("."+arg) == "."+arg {
			return arg
		}
		return QuoteShell(arg)
	}), " ")
}

// ByteSize formats n for people, with the exact number if that differs.
func ByteSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB (%d bytes)", float64(n)/(1<<30), n)
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB (%d bytes)", float64(n)/(1<<20), n)
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB (%d bytes)", float64(n)/(1<<10), n)
	}
	return Count(n, "byte")
}

// Memory is a number of bytes in short, such as "612 MB"; "" for none.
func Memory(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 9_950_000_000:
		return fmt.Sprintf("%d MB", (n+500_000)/1_000_000)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// Used says what an attempt used, such as "CPU 3m40s, 612 MB"; "" where that is not known.
func Used(c event.Cost) string {
	var parts []string
	if cpu := c.CPU(); cpu > 0 {
		parts = append(parts, "CPU "+Gap(cpu))
	}
	if c.MaxRSS > 0 {
		parts = append(parts, Memory(c.MaxRSS))
	}
	return strings.Join(parts, ", ")
}

// MoreThan says that there is more than the n things that were printed.
func MoreThan(n int, thing string) string {
	if n == 1 {
		return "there is more than 1 " + thing
	}
	return "there are more than " + Count(int64(n), thing)
}

// Cell returns text as a cell of a CSV file: without control characters, because it may reach a terminal, and
// no formula for a spreadsheet. JSON has the exact text.
func Cell(text string) string {
	cell := Escape(text)
	if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// Body is a payload or result in one line: whole in a pipe, on a terminal as much as a person reads.
func Body(body []byte, terminal bool) string {
	const most = 1000 // columns
	if len(body) == 0 {
		return "(0 bytes)"
	}
	if !terminal || len(body) <= most {
		return string(body)
	}
	return Truncate(Escape(string(body[:min(len(body), 4*most)])), most) +
		fmt.Sprintf(" (%d bytes in all; --json has them)", len(body))
}

// Block returns text of several lines, indented and escaped; on a terminal only its end, where the error
// usually is.
func Block(text string, terminal bool) string {
	const most = 20
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if terminal && len(lines) > most {
		lines = append([]string{fmt.Sprintf("… %s before; --json has all", Count(int64(len(lines)-most), "line"))},
			lines[len(lines)-most:]...)
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight("    | "+Escape(strings.TrimSuffix(l, "\r")), " ") + "\n")
	}
	return b.String()
}
