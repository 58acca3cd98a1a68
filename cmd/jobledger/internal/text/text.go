// Package text gives values the form in which people and programs read them: durations, times, sizes, counted nouns,
// and strings that may hold anything. Its functions are pure.
package text

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// EscapeJSON returns one line of encoded JSON with the characters escaped that a terminal or a reader could stumble
// over. The line keeps its meaning. It returns line itself if nothing needs escaping.
func EscapeJSON(line []byte) []byte {
	if bytes.IndexFunc(line, func(r rune) bool { return r >= 0x7f }) < 0 {
		return line
	}
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

// Escape makes text fit for one line of a terminal: what could do harm there stands as \x1b, \n, \u202e.
func Escape(text string) string { return escapeExcept(text, "") }

// EscapeLines is Escape for text of more than one line; it leaves line feeds and tabs.
func EscapeLines(text string) string { return escapeExcept(text, "\n\t") }

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
