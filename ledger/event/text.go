package event

import "unicode/utf8"

// appendText appends s as a JSON string. The bytes are frozen: exports are compared by them, and leaves are
// hashed. A string of printable ASCII without quotation mark and backslash is copied. In any other, the
// quotation mark, the backslash, <, >, &, the control characters below U+0020, U+2028 and U+2029 are escaped,
// and a byte that is not UTF-8 becomes \ufffd. With ascii, every character above U+007F is escaped too, above
// U+FFFF as a surrogate pair, so that the bytes do not depend on which characters a program can show.
func appendText(dst []byte, s string, ascii bool) []byte {
	dst = append(dst, '"')
	if isPlain(s) {
		return append(append(dst, s...), '"')
	}
	begin := 0 // of what has not been copied
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !escapes(r, size, ascii) {
			i += size
			continue
		}
		dst = appendEscape(append(dst, s[begin:i]...), r)
		i += size
		begin = i
	}
	return append(append(dst, s[begin:]...), '"')
}

// AppendText appends s as the JSON string that a leaf has of it, in ASCII. Its bytes are the same for ever.
func AppendText(dst []byte, s string) []byte { return appendText(dst, s, true) }

// isPlain reports whether s is printable ASCII without quotation mark and backslash.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// escapes reports whether r, which was decoded from size bytes, is escaped in a string that is not plain.
func escapes(r rune, size int, ascii bool) bool {
	switch r {
	case '"', '\\', '<', '>', '&', '\u2028', '\u2029':
		return true
	case utf8.RuneError:
		return ascii || size == 1
	}
	return r < ' ' || ascii && r >= utf8.RuneSelf
}

// shortEscapes are the characters that have an escape of two characters in JSON.
var shortEscapes = [...]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// appendEscape appends the escape of r: the short one where there is one.
func appendEscape(dst []byte, r rune) []byte {
	switch {
	case int(r) < len(shortEscapes) && shortEscapes[r] != 0:
		return append(dst, '\\', shortEscapes[r])
	case r > 0xffff:
		r -= 0x10000
		return appendUnit(appendUnit(dst, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return appendUnit(dst, r)
}

// appendUnit appends \u and the four hexadecimal digits of a UTF-16 code unit.
func appendUnit(dst []byte, unit rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[unit>>12&15], digits[unit>>8&15], digits[unit>>4&15], digits[unit&15])
}
