package event

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"jobledger/ledger/jsonscan"
)

// Line is an event as an export has it: the public form, and on the same line what is stored next to the
// event. The keys are payload or result, payload_base64 or result_base64 where the bytes are not UTF-8, and
// salt in hex. A missing key means that there is no such text, or that it was erased.
type Line struct {
	Event
	Salt []byte // of the job's digests; exported with the payload
	Body []byte // the payload of enqueued and replaced, the result of succeeded; nil: none, erased, or left out
}

// BodyKey is what the body of an event of this kind is called; "" where there is none.
func BodyKey(k Kind) string {
	switch {
	case k.is(payload):
		return "payload"
	case k.is(result):
		return "result"
	}
	return ""
}

// AppendJSON appends l as one JSON object, without a line feed.
func (l *Line) AppendJSON(dst []byte) []byte {
	dst = l.Event.appendJSON(dst, false)
	key := BodyKey(l.Kind())
	if key == "" || l.Body == nil {
		return dst
	}
	dst = append(append(dst[:len(dst)-1], `,"`...), key...)
	if utf8.Valid(l.Body) {
		dst = appendText(append(dst, `":`...), string(l.Body), false)
	} else {
		dst = append(base64.StdEncoding.AppendEncode(append(dst, `_base64":"`...), l.Body), '"')
	}
	if l.Salt != nil {
		dst = append(hex.AppendEncode(append(dst, `,"salt":"`...), l.Salt), '"')
	}
	return append(dst, '}')
}

// MarshalJSON is AppendJSON for package encoding/json.
func (l Line) MarshalJSON() ([]byte, error) {
	return l.AppendJSON(make([]byte, 0, 512+2*len(l.Body))), nil
}

// UnmarshalJSON reads what AppendJSON wrote, to the byte. It leaves the same questions open as Event's.
func (l *Line) UnmarshalJSON(text []byte) error {
	if err := CheckStrings(text); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	all := string(text)
	f := fields{read: true, in: jsonscan.InOrder(all), clone: true} // an actor's name shall not keep a payload
	in, err := readLine(&f)
	if err != nil || !f.in.AtEnd() { // in another order than it is written in, or wrong
		f = reading(all)
		f.clone = true
		in, err = readLine(&f)
	}
	if err == nil {
		*l = in
	}
	return err
}

func readLine(f *fields) (in Line, err error) {
	var e eventFields
	e.take(f)
	var payload, payload64, result, result64, salt *string
	f.optional("payload", &payload)
	f.optional("payload_base64", &payload64)
	f.optional("result", &result)
	f.optional("result_base64", &result64)
	f.optional("salt", &salt)
	if in.Event, err = e.event(f); err != nil {
		return in, err
	}
	plain, encoded := payload, payload64
	switch BodyKey(in.Kind()) {
	case "payload":
		err = noneOf(result, result64)
	case "result":
		plain, encoded = result, result64
		err = noneOf(payload, payload64, salt)
	default:
		err = noneOf(payload, payload64, result, result64, salt)
	}
	switch {
	case err != nil:
	case plain != nil && encoded != nil:
		err = errors.New("a body is given twice")
	case plain != nil:
		in.Body = []byte(*plain)
	case encoded != nil:
		if in.Body, err = base64.StdEncoding.Strict().DecodeString(*encoded); err != nil {
			err = fmt.Errorf("base64: %w", err)
		}
	}
	if err == nil && salt != nil {
		if in.Salt, err = hex.DecodeString(*salt); err != nil {
			err = fmt.Errorf("salt: %w", err)
		}
	}
	if err == nil && in.Kind() == KindReplaced && in.Salt != nil {
		err = errors.New("it has a salt that is not its own")
	}
	if err == nil && in.Kind() == KindEnqueued && (in.Salt == nil) != (in.Body == nil) {
		err = errors.New("payload and salt are only valid as a pair; one of them is missing")
	}
	if err != nil {
		return in, fmt.Errorf("%w: %s: %w", ErrDamaged, in.Kind(), err)
	}
	return in, nil
}

// CheckStrings returns an error unless the strings in a JSON text can be decoded to what was meant: it is
// UTF-8, and no escape is half of a surrogate pair. A decoder would put U+FFFD in place of either, and two
// keys could become one.
func CheckStrings(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("not UTF-8")
	}
	for i := bytes.IndexByte(text, '\\'); i >= 0 && i < len(text); i++ { // in JSON, within strings only
		if text[i] != '\\' {
			continue
		}
		r, ok := escaped(text[i:])
		switch {
		case !ok:
			i++ // over what is escaped, which may be another backslash
		case !utf16.IsSurrogate(r):
			i += 5
		default:
			second, _ := escaped(text[min(i+6, len(text)):])
			if utf16.DecodeRune(r, second) == utf8.RuneError {
				return fmt.Errorf("%s is half of a character", text[i:i+6])
			}
			i += 11
		}
	}
	return nil
}

// escaped reads a \u escape at the beginning of text.
func escaped(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// optional reads a field in which "" differs from nothing.
func (f *fields) optional(key string, v **string) {
	raw, ok := f.member(key, false)
	if !ok {
		return
	}
	s, err := jsonscan.Text(raw)
	if err != nil {
		f.fail(key, raw, "a string")
	}
	*v = &s
}

func noneOf(fields ...*string) error {
	for _, f := range fields {
		if f != nil {
			return errors.New("it has a payload, result or salt that is not its own")
		}
	}
	return nil
}
