package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// members are the keys and raw values of a JSON object, which the caller takes one by one. Taken in the order
// of the text, and as compact as this program writes them, they cost no memory; otherwise split finds all of
// them first. Parsing is strict where the codec relies on it, and does not look into the values.
type members struct {
	text    scanner
	ordered bool
	list    []member // not ordered: those not yet taken
}

type member struct{ key, raw string }

// inOrder returns the members of the object in data, to be taken in their order. A caller that has taken
// all asks atEnd whether that was their order.
func inOrder(data string) members {
	m := members{text: scanner{data: data}, ordered: true}
	if len(data) > 0 && !m.text.take('{') {
		m.text.i = -1
	}
	return m
}

func (m *members) atEnd() bool {
	return m.text.i == len(m.text.data) && (m.text.i == 0 || m.text.data[m.text.i-1] == '}')
}

// take returns the raw value of a key; ok is false if there is none.
func (m *members) take(key string) (raw string, ok bool) {
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

// left returns the first key that was not taken.
func (m *members) left() (key string, ok bool) {
	if len(m.list) == 0 {
		return "", false
	}
	return m.list[0].key, true
}

// split finds all members of the object in data.
func (m *members) split(data string) error {
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
		key, err := parseText(rawKey)
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

func parseText(raw string) (string, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", errors.New("not a string")
	}
	for i := 1; i < len(raw)-1; i++ {
		if c := raw[i]; c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			var s string
			err := json.Unmarshal([]byte(raw), &s)
			return s, err
		}
	}
	return raw[1 : len(raw)-1], nil
}

// parseList reads a list of strings.
func parseList(raw string) (list []string, err error) {
	s := scanner{data: raw}
	if s.take('[') {
		for {
			text, ok := s.text()
			if !ok {
				break
			}
			list = append(list, text)
			if s.take(']') && s.i == len(raw) {
				return list, nil
			}
			if !s.take(',') {
				break
			}
		}
	}
	list = nil
	err = json.Unmarshal([]byte(raw), &list) // a form that this program does not write
	return list, err
}

// parseDict reads an object of strings. It is stricter than package encoding/json, which takes null for ""
// and the last of two values.
func parseDict(raw string) (map[string]string, error) {
	var m members
	if err := m.split(raw); err != nil {
		return nil, err
	}
	dict := make(map[string]string, len(m.list))
	for _, e := range m.list {
		text, err := parseText(e.raw)
		if err != nil {
			return nil, err
		}
		dict[e.key] = text
	}
	if len(dict) < len(m.list) {
		return nil, errors.New("a name is given twice")
	}
	return dict, nil
}

// text takes a string.
func (s *scanner) text() (string, bool) {
	raw, err := s.value()
	if err != nil {
		return "", false
	}
	text, err := parseText(raw)
	return text, err == nil
}

// maxSeconds is the longest duration, which is also exact to the microsecond as a float64.
const maxSeconds = 1 << 53 / 1e6

// parseInt and parseFloat take what JSON calls a number, which is less than what package strconv takes.
func parseInt(raw string) (int64, error) {
	if !isNumber(raw) {
		return 0, errors.New("not a number")
	}
	return strconv.ParseInt(raw, 10, 64)
}

func parseFloat(raw string) (float64, error) {
	if !isNumber(raw) {
		return 0, errors.New("not a number")
	}
	return strconv.ParseFloat(raw, 64)
}

func isNumber(raw string) bool {
	s := scanner{data: raw}
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		_ = s.take('+') || s.take('-')
		if !s.digits() {
			return false
		}
	}
	return s.i == len(raw)
}
