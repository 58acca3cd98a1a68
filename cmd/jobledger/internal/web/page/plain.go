package page

import (
	"bytes"
	"unicode/utf8"

	"jobledger/cmd/jobledger/internal/render"
)

// plain escapes, in page, a whole document, what could turn the direction of writing or hide: \u202e, as on a
// terminal. A producer writes the key and tags of a job, and none of that may change how the text around it
// reads. The value of a field stays as it is: it is sent back.
func plain(page []byte) []byte {
	if !suspicious(page) {
		return page
	}
	var out bytes.Buffer
	out.Grow(len(page) + len(page)/64)
	for len(page) > 0 {
		begin := bytes.Index(page, []byte(` value="`))
		if begin < 0 {
			begin = len(page)
		}
		out.WriteString(render.EscapeLines(string(page[:begin])))
		page = page[begin:]
		if len(page) == 0 {
			break
		}
		const name = len(` value="`)
		end := name + bytes.IndexByte(page[name:], '"') // a value has it as an entity
		if end < name {
			end = len(page)
		}
		out.Write(page[:end])
		page = page[end:]
	}
	return out.Bytes()
}

// suspicious reports whether text has anything but what can be seen and the ends of lines.
func suspicious(text []byte) bool {
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			if b < ' ' && b != '\n' && b != '\t' || b == 0x7f {
				return true
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 || render.Harmful(r) {
			return true
		}
		i += n
	}
	return false
}
