package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x7f {
			return false
		}
	}
	return true
}

// jsonEscape works on encoded JSON: there, such characters can only stand within strings.
func jsonEscape(line []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(line) {
		if r >= 0x7f && harmful(r) {
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

// harmful says whether r may move the cursor, turn the direction of writing or hide.
func harmful(r rune) bool {
	switch {
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
		return true
	case r == 0x2028, r == 0x2029, r == 0xfeff, r == 0x200b, 0x2060 <= r && r <= 0x2064:
		return true
	}
	return 0xe0000 <= r && r <= 0xe007f // tags
}

// escape makes text fit for one line of a terminal: what could do harm there stands as \x1b, \n, \u202e.
func escape(text string) string { return escapeExcept(text, "") }

// escapeLines is escape for text of more than one line; it leaves line feeds and tabs.
func escapeLines(text string) string { return escapeExcept(text, "\n\t") }

func escapeExcept(text, harmless string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError || harmful(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case !harmful(r) || strings.ContainsRune(harmless, r):
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

// style is a color of the terminal.
type style string

const (
	plain  style = ""
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	blue   style = "34"
	cyan   style = "36"
	gray   style = "90"
	bold   style = "1"
)

// stateStyles are the colors of job states, claim outcomes and events.
var stateStyles = map[string]style{
	"queued": blue, "claimed": cyan, "running": cyan, "succeeded": green, "failed": red, "cancelled": gray,
	"released": yellow, "reclaimed": yellow, "refused": yellow, "retried": yellow, "paused": yellow, "ok": green,
	"working": cyan, "silent": red, "stopped": gray,
}

// pad fills text up to width columns.
func pad(text string, width int, right bool) string {
	space := strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
	if right {
		return space + text
	}
	return text + space
}

// truncate cuts text to width columns between two characters as people see them, and ends it in "…".
func truncate(text string, width int) string {
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

// wrap breaks text between words into lines of at most width columns, longer only for a longer word.
func wrap(text string, width int) []string {
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

// shorten cuts the middle out of a text that would fill the screen, such as one that quotes a file taken for an
// argument: what is wrong stands before it, and what is allowed after it.
func shorten(text string) string {
	const most, kept = 2000, 500
	if len(text) <= most {
		return text
	}
	begin, end := strings.ToValidUTF8(text[:kept], ""), strings.ToValidUTF8(text[len(text)-kept:], "")
	return fmt.Sprintf("%s … (%d bytes left out) … %s", begin, len(text)-2*kept, end)
}
