// Package jsonscan reads JSON objects member by member, each value raw until its reader says what it must be.
// It costs no memory where the text is as this program writes it. Package encoding/json reads what is not:
//
//	m := jsonscan.InOrder(text)
//	raw, ok := m.Take("pos")
//	n, err := jsonscan.Int(raw)
//
// The files in reading order:
//
//   - members.go: [Members] and the scanner below them
//   - values.go: [Text], [Int], [Float], [List] and [Dict] of raw values
package jsonscan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Members are the keys and raw values of a JSON object, which the caller takes one by one. Taken in the order
// of the text, and as compact as this program writes them, they cost no memory; otherwise Split finds all of
// them first. Parsing is strict where the codec relies on it, and does not look into the values.
type Members struct {
	text    scanner
	ordered bool
	list    []member // not ordered: those not yet taken
}

type member struct{ key, raw string }

// InOrder returns the members of the object in data, to be taken in their order. A caller that has taken
// all asks AtEnd whether that was their order.
func InOrder(data string) Members {
	m := Members{text: scanner{data: data}, ordered: true}
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
	s := scanner{data: data}
	s.space()
	if !s.take('{') {
		return errors.New("not a JSON object")
	}
	m.list = make([]member, 0, 1+strings.Count(data, ","))
	for s.space(); !s.take('}'); s.space() {
		if len(m.list) > 0 {
			if s.i == len(data) {
				return errNoEnd
			}
			if !s.take(',') {
				return errors.New("a comma is missing")
			}
			s.space()
		}
		rawKey, err := s.value()
		if err != nil {
			return err
		}
		key, err := Text(rawKey)
		if err != nil {
			return fmt.Errorf("key %.40s: %w", rawKey, err)
		}
		if s.space(); !s.take(':') {
			return errors.New("a colon is missing")
		}
		s.space()
		raw, err := s.value()
		if err != nil {
			return err
		}
		m.list = append(m.list, member{key, raw})
	}
	if s.space(); s.i != len(data) {
		return errors.New("text after the JSON object")
	}
	return nil
}

var errNoEnd = errors.New("the JSON object has no end")

// scanner goes through a JSON text. Below zero, i says that the text is not what was expected.
type scanner struct {
	data string
	i    int
}

// member returns the value behind "key": where that is what comes next, and goes behind it.
func (s *scanner) member(key string) (raw string, ok bool) {
	from := s.i + 1
	end := from + len(key)
	if s.i < 0 || end+1 >= len(s.data) || s.data[s.i] != '"' || s.data[from:end] != key ||
		s.data[end] != '"' || s.data[end+1] != ':' {
		return "", false
	}
	s.i = end + 2
	raw, err := s.value()
	switch {
	case err == nil && s.take('}') && s.i == len(s.data):
	case err == nil && s.i < len(s.data) && s.take(','):
	default:
		s.i = -1
		return "", false
	}
	return raw, true
}

func (s *scanner) space() {
	for s.i < len(s.data) &&
		(s.data[s.i] == ' ' || s.data[s.i] == '\t' || s.data[s.i] == '\n' || s.data[s.i] == '\r') {
		s.i++
	}
}

func (s *scanner) take(c byte) bool {
	if s.i < len(s.data) && s.data[s.i] == c {
		s.i++
		return true
	}
	return false
}

// digits takes one digit or more.
func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.data) && s.data[s.i] >= '0' && s.data[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// value takes one JSON value and returns it raw.
func (s *scanner) value() (string, error) {
	start, depth, quoted := s.i, 0, false
	for ; s.i < len(s.data); s.i++ {
		c := s.data[s.i]
		switch {
		case quoted && c == '\\':
			s.i++
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				s.i++
				return s.data[start:s.i], nil
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth == 0 {
				return s.atom(start)
			}
			if depth--; depth == 0 {
				s.i++
				return s.data[start:s.i], nil
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ':'):
			return s.atom(start)
		}
	}
	return "", errNoEnd
}

func (s *scanner) atom(start int) (string, error) {
	if start == s.i {
		return "", errors.New("a value is missing")
	}
	return s.data[start:s.i], nil
}

// text takes a string.
func (s *scanner) text() (string, bool) {
	raw, err := s.value()
	if err != nil {
		return "", false
	}
	text, err := Text(raw)
	return text, err == nil
}
