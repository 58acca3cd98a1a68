package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// TestLineKeepsBodiesExactly: a payload survives the round trip whatever bytes it has.
func TestLineKeepsBodiesExactly(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for _, body := range [][]byte{{}, {0}, every, []byte("\u2028\ufeff\ufffd<&>\"\\\x7f\u0080"), []byte("😀\r\n"),
		{0xed, 0xa0, 0x80}, bytes.Repeat([]byte{'x'}, 1<<20), nil} {
		for _, b := range []event.Body{&event.Enqueued{Queue: "q"}, &event.Succeeded{}} {
			line := event.Line{Event: event.Event{Pos: 1, Job: "J", Seq: 1, At: ledgertest.Epoch, Actor: "a",
				To: event.Queued, Body: b}, Body: body}
			if b.Kind() == event.KindEnqueued && body != nil {
				line.Salt = []byte{1, 0xff}
			}
			text, err := json.Marshal(line)
			if err != nil {
				t.Fatal(err)
			}
			var back event.Line
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatalf("%.200s: %v", text, err)
			}
			if !bytes.Equal(back.Body, body) || (back.Body == nil) != (body == nil) ||
				!bytes.Equal(back.Salt, line.Salt) {
				t.Errorf("%s: got %.80q, want %.80q", b.Kind(), back.Body, body)
			}
		}
	}
}

// Text that a decoder would replace with U+FFFD is refused; text that it keeps is accepted.
func TestCheckStringsRefusesHalfCharacters(t *testing.T) {
	for text, whole := range map[string]bool{
		`"a"`: true, `"\ud83d\ude00"`: true, `"\ufffd"`: true, `"\\ud800"`: true, `"\\\\ud800"`: true,
		`"\uD7FF\uE000"`: true, `"\n\u0000"`: true, ``: true,
		`"\ud800"`: false, `"\udc00"`: false, `"\ud83d"`: false, `"\ud83d\ud83d\ude00"`: false,
		`"\ude00\ud83d"`: false, `"\ud83d\\ude00"`: false,
		`"\ud83dx\ude00"`: false, `"\\\ud800"`: false, `{"\uDBFF":1}`: false, "\"\xff\"": false,
		"\"\xed\xa0\x80\"": false, `"\ud83d\u`: false,
	} {
		if err := event.CheckStrings([]byte(text)); (err == nil) != whole {
			t.Errorf("%s: got %v, want whole %t", text, err, whole)
		}
	}
	line := event.Line{Event: event.Event{Pos: 1, At: ledgertest.Epoch, Actor: "a",
		Body: &event.Restored{From: "x"}}}
	text := line.AppendJSON(nil)
	for _, bad := range []string{`\ud800`, "\xff"} {
		err := new(event.Line).UnmarshalJSON(bytes.Replace(text, []byte(`"a"`), []byte(`"`+bad+`"`), 1))
		if !errors.Is(err, ledger.ErrDamaged) {
			t.Errorf("an actor %q: got %v, want %v", bad, err, ledger.ErrDamaged)
		}
	}
}

// FuzzCheckStrings compares CheckStrings with package encoding/json: a text is accepted if and only if
// decoding loses nothing.
func FuzzCheckStrings(f *testing.F) {
	for _, seed := range []string{`"a"`, `"\ud83d\ude00"`, `"\ufffd\uFFFD"`, `"\\ud800"`, `"\ud800"`,
		`"\ude00\ud83d"`, `["\ud83d",{"\udc00":1}]`, "\"\xff\"", "\"\ufffd\"", `{"a":"\\\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := event.CheckStrings(text)
		var value any
		if json.Unmarshal(text, &value) != nil {
			return // not JSON: CheckStrings only has to return
		}
		meant := strings.Count(string(text), "\ufffd") +
			strings.Count(strings.ToLower(strings.ReplaceAll(string(text), `\\`, "")), `\ufffd`)
		if err == nil && utf8.Valid(text) && replaced(value) > meant {
			t.Fatalf("%q passes, and is decoded to %q", text, value)
		}
		// a duplicate field: the decoder keeps one value only
		if err != nil && replaced(value) == 0 && !bytes.Contains(text, []byte(`":`)) {
			t.Fatalf("%q is refused, and is decoded to %q: %v", text, value, err)
		}
	})
}

// replaced counts the characters U+FFFD in the strings of a decoded value.
func replaced(value any) (n int) {
	switch v := value.(type) {
	case string:
		return strings.Count(v, "\ufffd")
	case []any:
		for _, each := range v {
			n += replaced(each)
		}
	case map[string]any:
		for name, each := range v {
			n += strings.Count(name, "\ufffd") + replaced(each)
		}
	}
	return n
}

// A line of an export that was read is written as a line that reads the same, to the byte of its body.
func FuzzLine(f *testing.F) {
	for i, e := range ledgertest.SampleEvents(f) {
		e.Pos, e.At, e.Actor = int64(i+1), ledgertest.Epoch, "a"
		for _, body := range [][]byte{nil, {}, []byte("text \u202e"), {0xff, 0}} {
			line := event.Line{Event: e, Body: body}
			if e.Kind() == event.KindEnqueued && body != nil {
				line.Salt = []byte("salt")
			}
			f.Add(line.AppendJSON(nil))
		}
	}
	bare := event.Line{Event: event.Event{Pos: 1, At: ledgertest.Epoch, Actor: "a",
		Body: &event.Enqueued{Queue: "q"}}}
	text := bare.AppendJSON(nil)
	for _, body := range []string{`"payload":"","salt":""`, `"payload_base64":"","salt":"00ff"`,
		`"payload":"\u0000","salt":"00"`, `"payload":null`, `"result":""`} {
		f.Add(fmt.Appendf(nil, "%s,%s}", text[:len(text)-1], body))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var line, again event.Line
		if err := line.UnmarshalJSON(text); err != nil {
			if !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, ledger.ErrUnknownKind) ||
				!reflect.DeepEqual(line, event.Line{}) {
				t.Fatalf("%s\nis refused with %v and leaves %+v", text, err, line)
			}
			return
		}
		written := line.AppendJSON(nil)
		if !json.Valid(written) {
			t.Fatalf("%s\nwritten as %s, which is not JSON", text, written)
		}
		if err := again.UnmarshalJSON(written); err != nil || !reflect.DeepEqual(again, line) {
			t.Fatalf("%s\nread as %+v\nwritten %s\nread as %+v, %v", text, line, written, again, err)
		}
	})
}
