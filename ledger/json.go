package ledger

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MarshalJSON returns e in its public form: the envelope and data as an object, every field there, null where
// there is nothing, times in RFC 3339 UTC, durations in seconds.
func (e Event) MarshalJSON() ([]byte, error) { return e.appendJSON(make([]byte, 0, 512)), nil }

func (e *Event) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"pos":`...), e.Pos, 10)
	b = appendTextOrNull(append(b, `,"job":`...), string(e.Job))
	b = appendIntOrNull(append(b, `,"seq":`...), e.Seq)
	b = appendText(append(b, `,"kind":`...), e.Kind().String())
	b = appendTime(append(b, `,"at":`...), e.At)
	b = appendText(append(b, `,"actor":`...), e.Actor)
	b = appendTextOrNull(append(b, `,"worker":`...), e.Worker.Name)
	b = appendTextOrNull(append(b, `,"token":`...), e.Token)
	b = appendIntOrNull(append(b, `,"attempt":`...), int64(e.Attempt))
	b = appendTextOrNull(append(b, `,"from_state":`...), e.From.String())
	b = appendTextOrNull(append(b, `,"to_state":`...), e.To.String())
	b = appendPublic(append(b, `,"data":`...), e.Body, e.Worker)
	return append(b, '}')
}

// UnmarshalJSON reads what MarshalJSON wrote. N is not in it, and of Worker only the events that begin a claim or
// a worker say more than the name.
func (e *Event) UnmarshalJSON(text []byte) error {
	f := reading(string(text))
	f.clone = true
	return e.readJSON(&f)
}

func (e *Event) readJSON(f *fields) error {
	var in Event
	var kind, from, to string
	f.int64("pos", &in.Pos)
	f.text("job", (*string)(&in.Job))
	f.int64("seq", &in.Seq)
	f.text("kind", &kind)
	f.time("at", &in.At)
	f.text("actor", &in.Actor)
	f.text("worker", &in.Worker.Name)
	f.text("token", &in.Token)
	f.int("attempt", &in.Attempt)
	f.text("from_state", &from)
	f.text("to_state", &to)
	data, _ := f.member("data", false)
	err := f.end()
	if err == nil && in.At.IsZero() {
		err = errors.New("at is missing")
	}
	if err == nil {
		in.From, err = parseStateOrNone(from)
	}
	if err == nil {
		in.To, err = parseStateOrNone(to)
	}
	if err != nil {
		return fmt.Errorf("%w: event: %w", ErrDamaged, err)
	}
	k, err := ParseKind(kind)
	if err != nil {
		return err
	}
	if in.Body, err = decode(k, strings.Clone(data), nil, &in.Worker); err != nil {
		return err
	}
	*e = in
	return nil
}

func parseStateOrNone(word string) (State, error) {
	if word == "" {
		return 0, nil
	}
	return ParseState(word)
}

func appendTextOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendText(dst, s)
}

func appendIntOrNull(dst []byte, n int64) []byte {
	if n == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, n, 10)
}
