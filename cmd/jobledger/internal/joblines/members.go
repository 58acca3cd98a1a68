package joblines

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"

	"jobledger/cmd/jobledger/internal/cli"
)

// members yields the keys of a JSON object and their values, each as it stands in the text: its bytes are
// those of object. The text must be valid JSON. Package encoding/json copies each value and takes more than
// twice the time for a line.
func members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := bytes.IndexByte(object, '{') + 1; ; i++ {
			if i += blanks(object[i:]); object[i] == '}' {
				return
			}
			n := length(object[i:])
			key, _ := unquote(object[i : i+n])
			i += n
			i += blanks(object[i:]) + len(":")
			i += blanks(object[i:])
			n = length(object[i:])
			if !yield(key, object[i:i+n:i+n]) {
				return
			}
			i += n
			if i += blanks(object[i:]); object[i] == '}' {
				return
			}
		}
	}
}

// blanks returns how many bytes of white space s begins with.
func blanks(s []byte) int {
	n := 0
	for s[n] == ' ' || s[n] == '\t' || s[n] == '\n' || s[n] == '\r' {
		n++
	}
	return n
}

// length returns the length of the value that s begins with; more of the object follows it.
func length(s []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch s[i] {
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case '"':
			for i++; s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		default:
			if depth > 0 {
				continue
			}
			for c := s[i]; c != ',' && c != '}' && c > ' '; c = s[i] { // a number, true, false or null
				i++
			}
			return i
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// unquote reads a string; ok is false if value is none.
func unquote(value []byte) (s string, ok bool) {
	switch {
	case value[0] != '"':
		return "", false
	case bytes.IndexByte(value, '\\') < 0:
		return string(value[1 : len(value)-1]), true
	}
	return s, json.Unmarshal(value, &s) == nil
}

// notObject says what is wrong with a line that is not one JSON object; nil: nothing is.
func notObject(line []byte) error {
	start := bytes.TrimLeft(line, " \t\r\n")
	isObject := bytes.HasPrefix(start, []byte("{"))
	if isObject && json.Valid(line) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(line))
	switch err := d.Decode(new(json.RawMessage)); {
	case !isObject:
		return cli.Usagef("not a JSON object")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return cli.Usagef("not a JSON object: it breaks off")
	case err != nil:
		return cli.Usagef("not a JSON object: %w", err)
	}
	return cli.Usagef("text after the JSON object; a line holds one")
}
