package event

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MarshalJSON returns e in its public form: the envelope and data as an object, every field there, null where
// there is nothing, times in RFC 3339 UTC, durations in seconds.
func (e Event) MarshalJSON() ([]byte, error) { return e.appendJSON(make([]byte, 0, 512), false), nil }

// AppendLeaf appends the text of e that evidence hashes: the public form, in ASCII. Its bytes are the same on
// each engine and after each export and import, for ever.
func (e *Event) AppendLeaf(dst []byte) []byte { return e.appendJSON(dst, true) }

func (e *Event) appendJSON(b []byte, ascii bool) []byte {
	b = strconv.AppendInt(append(b, `{"pos":`...), e.Pos, 10)
	b = appendTextOrNull(append(b, `,"job":`...), string(e.Job), ascii)
	b = appendIntOrNull(append(b, `,"seq":`...), e.Seq)
	b = appendText(append(b, `,"kind":`...), e.Kind().String(), ascii)
	b = appendTime(append(b, `,"at":`...), e.At)
	b = appendText(append(b, `,"actor":`...), e.Actor, ascii)
	b = appendTextOrNull(append(b, `,"worker":`...), e.Worker.Name, ascii)
	b = appendTextOrNull(append(b, `,"token":`...), e.Token, ascii)
	b = appendIntOrNull(append(b, `,"attempt":`...), int64(e.Attempt))
	b = appendTextOrNull(append(b, `,"from_state":`...), e.From.String(), ascii)
	b = appendTextOrNull(append(b, `,"to_state":`...), e.To.String(), ascii)
	b = appendPublic(append(b, `,"data":`...), e.Body, e.Worker, ascii)
	return append(b, '}')
}

// UnmarshalJSON reads what MarshalJSON wrote. N is not in it, and of Worker only the events that begin a
// claim or a worker say more than the name.
func (e *Event) UnmarshalJSON(text []byte) error {
	f := reading(string(text))
	f.clone = true
	var raw eventFields
	raw.take(&f)
	in, err := raw.event(&f)
	if err == nil {
		*e = in
	}
	return err
}

// eventFields are the fields of an event in its public form.
type eventFields struct {
	in                   Event
	kind, from, to, data string
}

func (r *eventFields) take(f *fields) {
	f.int64("pos", &r.in.Pos)
	f.text("job", (*string)(&r.in.Job))
	f.int64("seq", &r.in.Seq)
	f.text("kind", &r.kind)
	f.time("at", &r.in.At)
	f.text("actor", &r.in.Actor)
	f.text("worker", &r.in.Worker.Name)
	f.text("token", &r.in.Token)
	f.int("attempt", &r.in.Attempt)
	f.text("from_state", &r.from)
	f.text("to_state", &r.to)
	r.data, _ = f.member("data", false)
}

// event returns the event of these fields, after all other fields were taken from f.
func (r *eventFields) event(f *fields) (Event, error) {
	in, err := r.in, f.end()
	if err == nil && in.At.IsZero() {
		err = errors.New("at is missing")
	}
	if err == nil {
		in.From, err = parseStateOrNone(r.from)
	}
	if err == nil {
		in.To, err = parseStateOrNone(r.to)
	}
	if err != nil {
		return in, fmt.Errorf("%w: event: %w", ErrDamaged, err)
	}
	k, err := ParseKind(r.kind)
	if err != nil {
		return in, err
	}
	in.Body, err = Decode(k, strings.Clone(r.data), nil, &in.Worker)
	return in, err
}

func parseStateOrNone(word string) (State, error) {
	if word == "" {
		return 0, nil
	}
	return ParseState(word)
}

func appendTextOrNull(dst []byte, s string, ascii bool) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendText(dst, s, ascii)
}

func appendIntOrNull(dst []byte, n int64) []byte {
	if n == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, n, 10)
}
