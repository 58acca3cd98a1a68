// Package jsonscan reads JSON objects member by member, each value raw until its reader says what it must be.
// It allocates nothing if the text is as this program writes it. Package encoding/json reads what is not:
//
//	m := jsonscan.InOrder(text)
//	raw, ok := m.Take("pos")
//	n, err := jsonscan.Int(raw)
//
// Or all of them, of text that is known to be valid:
//
//	for key, raw := range jsonscan.All(text) { … }
//
// The files in reading order:
//
//   - members.go: [Members], [All] and the scanner below them
//   - values.go: [Text], [Int], [Float], [List] and [Dict] of raw values
//
// Held by TestBodiesRoundTrip, TestEventJSONRefusesForeignText and TestDecodeRefusesForeignData of package
// ledger/event. This package is not part of the Go API, and may change in any release.
package jsonscan

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Members are the keys and raw values of a JSON object, which the caller takes one by one. Taken in the order
// of the text, and as compact as this program writes them, they cost no memory; otherwise Split finds all of
// them first. Parsing is strict where the codec relies on it, and does not look into the values.
type Members struct {
	text    scanner[string]
	ordered bool
	list    []member // not ordered: those not yet taken
}

type member struct{ key, raw string }

// InOrder returns the members of the object in data, to be taken in their order. A caller that has taken
// all asks AtEnd whether that was their order.
func InOrder(data string) Members {
	m := Members{text: scanner[string]{data: data}, ordered: true}
	if len(data) > 0 && !m.text.take('{') {
		m.text.i = -1
	}
	return m
}

// AtEnd reports whether all members were taken, in their order.
func (m *Members) AtEnd() bool {
	return m.text.i == len(m.text.data) && (m.text.i == 0 || m.text.data[m.text.i-1] == '}')
}

// Take returns the raw value of a key; ok is false if there is none.
func (m *Members) Take(key string) (raw string, ok bool) {
	if m.ordered {
		return m.text.member(key)
	}
	for i, e := range m.list {
		if e.key == key {
			m.list = slices.Delete(m.list, i, i+1)
			return e.raw, true
		}
	}
	return "", false
}

// Left returns the first key that was not taken.
func (m *Members) Left() (key string, ok bool) {
	if len(m.list) == 0 {
		return "", false
	}
	return m.list[0].key, true
}

// Split finds all members of the object in data.
func (m *Members) Split(data string) error {
	s := scanner[string]{data: data}
	if !s.object() {
		return errors.New("not a JSON object")
	}
	m.list = make([]member, 0, 1+strings.Count(data, ","))
	for {
		key, raw, more, err := s.next(len(m.list) == 0)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		m.list = append(m.list, member{key, raw})
	}
	if s.space(); s.i != len(data) {
		return errors.New("text after the JSON object")
	}
	return nil
}

// All yields the keys and raw values of the object in data, in the order of the text, which is valid JSON: of
// other text, it yields what comes before an error. The bytes that it yields are slices of data.
func All[T Raw](data T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s := scanner[T]{data: data}
		more := s.object()
		for first := true; more; first = false {
			key, raw, found, err := s.next(first)
			more = found && err == nil && yield(key, raw)
		}
	}
}

var errNoEnd = errors.New("the JSON object has no end")

// Raw is JSON as text or as bytes.
type Raw interface{ string | []byte }

// scanner goes through a JSON text. Below zero, i says that the text is not what was expected.
type scanner[T Raw] struct {
	data T
	i    int
}

// object takes the beginning of an object.
func (s *scanner[T]) object() bool {
	s.space()
	return s.take('{')
}

// next takes a member of an object, or its end: then more is false.
func (s *scanner[T]) next(first bool) (key string, raw T, more bool, err error) {
	if s.space(); s.take('}') {
		return key, raw, false, nil
	}
	if !first {
		if s.i == len(s.data) {
			return key, raw, false, errNoEnd
		}
		if !s.take(',') {
			return key, raw, false, errors.New("a comma is missing")
		}
		s.space()
	}
	rawKey, err := s.value()
	if err != nil {
		return key, raw, false, err
	}
	if key, err = Text(rawKey); err != nil {
		return key, raw, false, fmt.Errorf("key %.40s: %w", rawKey, err)
	}
	if s.space(); !s.take(':') {
		return key, raw, false, errors.New("a colon is missing")
	}
	s.space()
	raw, err = s.value()
	return key, raw, err == nil, err
}

// member returns the value behind "key": where that is what comes next, and goes behind it.
func (s *scanner[T]) member(key string) (raw T, ok bool) {
	from := s.i + 1
	end := from + len(key)
	if s.i < 0 || end+1 >= len(s.data) || s.data[s.i] != '"' || string(s.data[from:end]) != key ||
		s.data[end] != '"' || s.data[end+1] != ':' {
		return raw, false
	}
	s.i = end + 2
	raw, err := s.value()
	switch {
	case err == nil && s.take('}') && s.i == len(s.data):
	case err == nil && s.i < len(s.data) && s.take(','):
	default:
		s.i = -1
		return raw, false
	}
	return raw, true
}

func (s *scanner[T]) space() {
	for s.i < len(s.data) &&
		(s.data[s.i] == ' ' || s.data[s.i] == '\t' || s.data[s.i] == '\n' || s.data[s.i] == '\r') {
		s.i++
	}
}

func (s *scanner[T]) take(c byte) bool {
	if s.i < len(s.data) && s.data[s.i] == c {
		s.i++
		return true
	}
	return false
}

// digits takes one digit or more.
func (s *scanner[T]) digits() bool {
	start := s.i
	for s.i < len(s.data) && s.data[s.i] >= '0' && s.data[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// value takes one JSON value and returns it raw.
func (s *scanner[T]) value() (T, error) {
	data, start, depth := s.data, s.i, 0
	for i := start; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			if i = quoteAfter(data, i+1); i == len(data) {
				continue
			}
			if depth == 0 {
				s.i = i + 1
				return data[start:s.i], nil
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return s.atom(start, i)
			}
			if depth--; depth == 0 {
				s.i = i + 1
				return data[start:s.i], nil
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ':'):
			return s.atom(start, i)
		}
	}
	s.i = len(data)
	return data[:0], errNoEnd
}

// quoteAfter returns the index of the quotation mark that ends the string of which data has the text from i
// on; len(data) where there is none.
func quoteAfter[T Raw](data T, i int) int {
	for from := i; ; i++ {
		n := -1
		switch rest := any(data[i:]).(type) {
		case string:
			n = strings.IndexByte(rest, '"')
		case []byte:
			n = bytes.IndexByte(rest, '"')
		}
		if n < 0 {
			return len(data)
		}
		i += n
		slashes := 0
		for i-slashes > from && data[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

// atom takes what has no end of its own.
func (s *scanner[T]) atom(start, end int) (T, error) {
	if s.i = end; start == end {
		return s.data[:0], errors.New("a value is missing")
	}
	return s.data[start:end], nil
}

// text takes a string.
func (s *scanner[T]) text() (string, bool) {
	raw, err := s.value()
	if err != nil {
		return "", false
	}
	text, err := Text(raw)
	return text, err == nil
}
