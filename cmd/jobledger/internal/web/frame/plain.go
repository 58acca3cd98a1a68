package frame

import (
	"bytes"
	"unicode/utf8"

	"jobledger/cmd/jobledger/internal/words"
)

// plain escapes, in page, a whole document, what could turn the direction of writing or hide: \u202e, as on a
// terminal. A producer writes the key and tags of a job, and none of that may change how the text around it
// reads. The value of a field stays as it is: it is sent back.
func plain(page []byte) []byte {
	var out bytes.Buffer
	done := 0 // what of page is in out
	for i := 0; i < len(page); {
		if bytes.HasPrefix(page[i:], fieldBegin) {
			i += len(fieldBegin)
			if end := bytes.IndexByte(page[i:], '"'); end >= 0 { // a value has it as an entity
				i += end
			}
			continue
		}
		r, n := rune(page[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(page[i:])
		}
		if r != '\n' && r != '\t' && words.Harmful(r) {
			out.Write(page[done:i])
			out.WriteString(words.Escape(string(r)))
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return page
	}
	out.Write(page[done:])
	return out.Bytes()
}

// fieldBegin begins the value of a field.
var fieldBegin = []byte(` value="`)
