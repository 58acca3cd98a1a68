package page

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"jobledger/cmd/jobledger/internal/words"
)

// Limits of what a page shows of a payload or a result, in bytes.
const (
	maxBody = 64 << 10
	maxHex  = 4 << 10
	openTo  = 2 << 10 // what is shown without being asked for
)

// maxNesting is how deep JSON may be that is indented; deeper, indenting would be most of it.
const maxNesting = 50

// bodyView is a payload or a result as people read it.
type bodyView struct {
	Size int
	Kind string // JSON, text or bytes
	Text string
	Raw  string // as it came, where Text is indented; "": Text is so
	Cut  string // how much of it is here; "": all
	Open bool
}

// bodyOf is body: JSON is indented, and each of its numbers and strings stays as it was written; what is not
// text is in hex.
func bodyOf(body []byte) bodyView {
	v := bodyView{Size: len(body), Open: len(body) <= openTo}
	cut := func(most int) []byte {
		if len(body) <= most {
			return body
		}
		v.Cut = "the first " + words.ByteSize(int64(most))
		return body[:most]
	}
	var indented bytes.Buffer
	switch {
	case len(body) <= maxBody && nesting(body) <= maxNesting && json.Valid(body) &&
		json.Indent(&indented, body, "", "  ") == nil:
		v.Kind, v.Text = "JSON", indented.String()
		if raw := string(body); raw != v.Text {
			v.Raw = raw
		}
	case utf8.Valid(body) && bytes.IndexFunc(body, unreadable) < 0:
		v.Kind, v.Text = "text", strings.ToValidUTF8(string(cut(maxBody)), "")
	default:
		v.Kind, v.Text = "bytes", hex.Dump(cut(maxHex))
	}
	return v
}

// unreadable reports whether r is of no text.
func unreadable(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\x1b", r) }

// nesting is how deep the lists and objects of JSON are; of what is none, anything.
func nesting(body []byte) (most int) {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == '[' || c == '{'):
			depth++
			most = max(most, depth)
		case !quoted && (c == ']' || c == '}'):
			depth--
		}
	}
	return most
}
