package jsonscan

import (
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// Text reads a string.
func Text[T Raw](raw T) (string, error) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", errors.New("not a string")
	}
	text := string(raw[1 : len(raw)-1])
	escaped, ascii := look(text)
	if escaped || !ascii && !utf8.ValidString(text) {
		return decoded(raw)
	}
	return text, nil
}

// look reports whether a byte of s is a backslash or a control character, and whether all are of ASCII. It
// scans eight bytes at a time until it finds one of these.
func look(s string) (escaped, ascii bool) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		slash := w ^ '\\'*ones
		if (w|(w-' '*ones)|(slash-ones)&^slash)&highs != 0 {
			break
		}
	}
	ascii = true
	for ; i < len(s); i++ {
		c := s[i]
		escaped, ascii = escaped || c < ' ' || c == '\\', ascii && c < utf8.RuneSelf
	}
	return escaped, ascii
}

func decoded[T Raw](raw T) (s string, err error) {
	err = json.Unmarshal([]byte(raw), &s)
	return s, err
}

// List reads a list of strings.
func List(raw string) (list []string, err error) {
	s := scanner[string]{data: raw}
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

// Dict reads an object of strings. It is stricter than package encoding/json, which takes null for ""
// and the last of two values.
func Dict(raw string) (map[string]string, error) {
	var m Members
	if err := m.Split(raw); err != nil {
		return nil, err
	}
	dict := make(map[string]string, len(m.list))
	for _, e := range m.list {
		text, err := Text(e.raw)
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

// Int reads a whole number. It takes what JSON calls a number, which is less than what package strconv takes.
func Int(raw string) (int64, error) {
	if !isNumber(raw) {
		return 0, errors.New("not a number")
	}
	return strconv.ParseInt(raw, 10, 64)
}

// Float reads a number, as strictly as Int.
func Float(raw string) (float64, error) {
	if !isNumber(raw) {
		return 0, errors.New("not a number")
	}
	return strconv.ParseFloat(raw, 64)
}

func isNumber(raw string) bool {
	s := scanner[string]{data: raw}
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
