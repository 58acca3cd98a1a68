package wire

import (
	"bytes"
	"encoding/json"
)

// maxPlainNames is how many names plain compares with each other.
const maxPlainNames = 64

// plain reports whether body is one JSON object that check has nothing against; false: check is to look. It
// allocates nothing, and most requests are plain.
func plain(body []byte, lower bool) bool {
	if !json.Valid(body) {
		return false
	}
	type level struct {
		object bool
		first  int // of its names
	}
	var open [MaxDepth]level
	var names [maxPlainNames][]byte
	depth, named := 0, 0
	name := false // the next string is a name
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '{', '[':
			if depth == MaxDepth || depth == 0 && c == '[' {
				return false
			}
			open[depth] = level{c == '{', named}
			depth++
			name = c == '{'
		case '}', ']':
			depth--
			named, name = open[depth].first, false
		case ',':
			name = open[depth-1].object
		case '"':
			if depth == 0 {
				return false
			}
			end := i + 1
			for body[end] != '"' {
				if body[end] == '\\' {
					if name {
						return false
					}
					end++
				}
				end++
			}
			if name {
				text := body[i+1 : end]
				if named == maxPlainNames || lower && !small(text) {
					return false
				}
				for _, other := range names[open[depth-1].first:named] {
					if bytes.Equal(other, text) {
						return false
					}
				}
				names[named], name = text, false
				named++
			}
			i = end
		default:
			if depth == 0 && c != ' ' && c != '\t' && c != '\n' && c != '\r' {
				return false
			}
		}
	}
	return true
}

// small reports whether text is ASCII without capitals.
func small(text []byte) bool {
	for _, c := range text {
		if c >= 0x80 || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return true
}
