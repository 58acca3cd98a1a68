package ledger

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// MarshalJSON returns e in its public form: the envelope and data as an object, every field there, null where
// there is nothing, times in RFC 3339 UTC, durations in seconds.
func (e Event) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 512)
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
	b = encode(append(b, `,"data":`...), e.Body, e.Worker, true)
	return append(b, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote. N is not in it, and of Worker only the events that begin a claim or
// a worker say more than the name.
func (e *Event) UnmarshalJSON(text []byte) error {
	var in struct {
		Pos     int64           `json:"pos"`
		Job     JobID           `json:"job"`
		Seq     int64           `json:"seq"`
		Kind    string          `json:"kind"`
		At      json.RawMessage `json:"at"`
		Actor   string          `json:"actor"`
		Worker  string          `json:"worker"`
		Token   string          `json:"token"`
		Attempt int             `json:"attempt"`
		From    string          `json:"from_state"`
		To      string          `json:"to_state"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	kind, err := ParseKind(in.Kind)
	if err != nil {
		return err
	}
	at, err := parseTime(in.At)
	if err != nil {
		return fmt.Errorf("at %s: %w", in.At, err)
	}
	*e = Event{Pos: in.Pos, Job: in.Job, Seq: in.Seq, At: at, Actor: in.Actor, Worker: Worker{Name: in.Worker},
		Token: in.Token, Attempt: in.Attempt}
	if e.From, err = parseStateOrNone(in.From); err != nil {
		return err
	}
	if e.To, err = parseStateOrNone(in.To); err != nil {
		return err
	}
	e.Body, err = decode(kind, in.Data, &e.Worker)
	return err
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
