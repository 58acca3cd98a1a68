package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// encoded returns b in its public form, or in its stored form with the digest, which has its own column.
func encoded(b event.Body, w event.Worker, public bool) (data, digest []byte) {
	if public {
		return event.AppendPublic(nil, b, w), nil
	}
	return event.AppendStored(nil, b)
}

// showsProcess reports whether the public form of a kind includes the fields of the worker's process.
func showsProcess(k event.Kind) bool {
	switch k {
	case event.KindClaimed, event.KindTakenOver, event.KindWorkerStarted, event.KindWorkerStopped:
		return true
	}
	return false
}

func TestBodiesRoundTrip(t *testing.T) {
	who := event.Worker{Name: "w", Boot: "01JBOOT", Host: "höst", PID: 4711, Version: "v2"}
	for _, e := range ledgertest.SampleEvents(t) {
		for _, public := range []bool{false, true} {
			text, digest := encoded(e.Body, who, public)
			if len(text) > 0 && !json.Valid(text) {
				t.Errorf("%s: not JSON: %s", e.Kind(), text)
			}
			got := event.Worker{Name: "w"}
			body, err := event.Decode(e.Kind(), string(text), digest, &got)
			if err != nil || !reflect.DeepEqual(body, e.Body) {
				t.Errorf("%s: %s\nis read as %+v, %v\nwant       %+v", e.Kind(), text, body, err, e.Body)
			}
			if public && showsProcess(e.Kind()) != (got == who) {
				t.Errorf("%s: %s\nthe process is %+v", e.Kind(), text, got)
			}
		}
	}
}

func TestPublicFormEqualsGolden(t *testing.T) {
	golden := filepath.Join("..", "..", "testdata", "events.golden.jsonl")
	var list []event.Event
	var out bytes.Buffer
	write := json.NewEncoder(&out)
	write.SetEscapeHTML(false)
	for i, e := range ledgertest.SampleEvents(t) {
		e.Pos, e.At, e.Actor = int64(i+1), ledgertest.Epoch.Add(time.Duration(i)*time.Second), "cli:ann@host"
		if i%2 == 0 { // a full body gets a full envelope too
			e.Job, e.Seq, e.From, e.To = "01JJOB0000000000000000000A", int64(i+1), event.Queued, event.State(i%6+1)
			e.Worker, e.Token, e.Attempt = event.Worker{Name: "w"}, "01JTOKEN00000000000000000A", 3
			if showsProcess(e.Kind()) {
				e.Worker = event.Worker{Name: "w", Boot: "01JBOOT000000000000000000A", Host: "host", PID: 4711,
					Version: "v2"}
			}
		}
		list = append(list, e)
		if err := write.Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.SplitAfter(out.String(), "\n"), strings.SplitAfter(string(want), "\n")
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%s has %d lines, want %d; rewrite it with -update", golden, len(wantLines), len(gotLines))
	}
	for i, line := range wantLines[:len(list)] {
		if gotLines[i] != line {
			t.Errorf("line %d:\ngot  %swant %s", i+1, gotLines[i], line)
		}
		var e event.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || !reflect.DeepEqual(e, list[i]) {
			t.Errorf("line %d is read as %+v, %v", i+1, e, err)
		}
	}
}

func TestDecodeRefusesForeignData(t *testing.T) {
	for _, c := range []struct {
		kind event.Kind
		data string
		want error
	}{
		{0, `{}`, ledger.ErrUnknownKind},
		{-1, `{}`, ledger.ErrUnknownKind},
		{99, `{}`, ledger.ErrUnknownKind},
		{event.KindCancelled, `{"reason":"a","more":1}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"Reason":"a"}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason":"a","reason":"b"}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason":null,"reason":null}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"boot":"b"}`, ledger.ErrDamaged},
		{event.KindWorkerStopped, `{"queue":"mail"}`, ledger.ErrDamaged},
		{event.KindCancelled, ` `, ledger.ErrDamaged},
		{event.KindCancelled, `null`, ledger.ErrDamaged},
		{event.KindCancelled, `[]`, ledger.ErrDamaged},
		{event.KindCancelled, `{`, ledger.ErrDamaged},
		{event.KindCancelled, `{}}`, ledger.ErrDamaged},
		{event.KindCancelled, `{} {}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason"}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason":}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason" "a"}`, ledger.ErrDamaged},
		{event.KindCancelled, `{reason:"a"}`, ledger.ErrDamaged},
		{event.KindCancelled, `{'reason':'a'}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason":"a",}`, ledger.ErrDamaged},
		{event.KindCancelled, `{,"reason":"a"}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason":"a}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason":"\x"}`, ledger.ErrDamaged},
		{event.KindCancelled, "{\"reason\":\"a\nb\"}", ledger.ErrDamaged},
		{event.KindCancelled, `{"reason":a}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason":1}`, ledger.ErrDamaged},
		{event.KindCancelled, `{"reason":"a"x}`, ledger.ErrDamaged},
		{event.KindErased, `{"bodies":1.5}`, ledger.ErrDamaged},
		{event.KindErased, `{"bodies":"1"}`, ledger.ErrDamaged},
		{event.KindErased, `{"bodies":+1}`, ledger.ErrDamaged},
		{event.KindErased, `{"bodies":01}`, ledger.ErrDamaged},
		{event.KindErased, `{"bodies":1e3}`, ledger.ErrDamaged},
		{event.KindErased, `{"bodies":9223372036854775808}`, ledger.ErrDamaged},
		{event.KindSucceeded, `{"exit_code":0x1}`, ledger.ErrDamaged},
		{event.KindHeartbeat, `{"progress":NaN}`, ledger.ErrDamaged},
		{event.KindHeartbeat, `{"progress":Infinity}`, ledger.ErrDamaged},
		{event.KindHeartbeat, `{"progress":.5}`, ledger.ErrDamaged},
		{event.KindHeartbeat, `{"progress":0x1p-1}`, ledger.ErrDamaged},
		{event.KindHeartbeat, `{"progress":1e999}`, ledger.ErrDamaged},
		{event.KindReleased, `{"snooze":1}`, ledger.ErrDamaged},
		{event.KindReleased, `{"snooze":TRUE}`, ledger.ErrDamaged},
		{event.KindReleased, `{"run_at":"yesterday"}`, ledger.ErrDamaged},
		{event.KindReleased, `{"run_at":"2026-01-02T03:04:05"}`, ledger.ErrDamaged},
		{event.KindReleased, `{"run_at":1.5}`, ledger.ErrDamaged},
		{event.KindReleased, `{"run_at":9223372036854775807}`, ledger.ErrDamaged},
		{event.KindReleased, `{"run_at":-9223372036854775808}`, ledger.ErrDamaged},
		{event.KindClaimed, `{"max_runtime":"1h"}`, ledger.ErrDamaged},
		{event.KindClaimed, `{"max_runtime":nan}`, ledger.ErrDamaged},
		{event.KindClaimed, `{"max_runtime":1e30}`, ledger.ErrDamaged},
		{event.KindEnqueued, `{"requires":"gpu"}`, ledger.ErrDamaged},
		{event.KindEnqueued, `{"requires":["gpu"}`, ledger.ErrDamaged},
		{event.KindEnqueued, `{"tags":["a"]}`, ledger.ErrDamaged},
		{event.KindEnqueued, `{"tags":{"a":1}}`, ledger.ErrDamaged},
		{event.KindEnqueued, `{"tags":{"a":null}}`, ledger.ErrDamaged},
		{event.KindEnqueued, `{"tags":{"a":"1","a":"2"}}`, ledger.ErrDamaged},
		{event.KindEnqueued, `{"tags":{"a":"1","\u0061":"1"}}`, ledger.ErrDamaged},
		{event.KindEnqueued, `{"tags":{"a":"1",}}`, ledger.ErrDamaged},
	} {
		if body, err := event.Decode(c.kind, c.data, nil, new(event.Worker)); !errors.Is(err, c.want) {
			t.Errorf("%s %s: got %+v, %v, want %v", c.kind, c.data, body, err, c.want)
		}
	}
}

func TestEventJSONRefusesForeignText(t *testing.T) {
	const good = `{"pos":1,"job":null,"seq":null,"kind":"restored","at":"2026-01-02T03:04:05Z","actor":"a",` +
		`"worker":null,"token":null,"attempt":null,"from_state":null,"to_state":null,"data":{"from":"x"}}`
	var e event.Event
	if err := json.Unmarshal([]byte(good), &e); err != nil {
		t.Fatal(err)
	}
	for old, new := range map[string]string{
		`"restored"`:             `"undone"`,
		`"kind":"restored"`:      `"kind":null`,
		`"2026-01-02T03:04:05Z"`: `null`,
		`"at":"2026-01-02`:       `"at":"02.01.2026`,
		`"to_state":null`:        `"to_state":"done"`,
		`"from_state":null`:      `"from_state":"Queued"`,
		`"pos":1`:                `"pos":"1"`,
		`"seq":null`:             `"seq":1.5`,
		`"job":null`:             `"job":17`,
		`"actor":"a"`:            `"actor":"a","actor":"b"`,
		`"token":null`:           `"lease_token":null`,
		`"data":{`:               `"note":"x","data":{`,
		`"data":{"from":"x"}`:    `"data":null`,
		`"from":"x"`:             `"form":"x"`,
	} {
		text := strings.Replace(good, old, new, 1)
		before := event.Event{Actor: "before"}
		e := before
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("accepted: %s", text)
		}
		if !reflect.DeepEqual(e, before) {
			t.Errorf("changed by what was refused: %+v", e)
		}
	}
}

func TestTimesAreReadInEitherForm(t *testing.T) {
	for text, want := range map[string]string{
		`1767323045000001`:                   "2026-01-02T03:04:05.000001Z",
		`"2026-01-02T03:04:05Z"`:             "2026-01-02T03:04:05.000000Z",
		`"2026-01-02T03:04:05.123456789Z"`:   "2026-01-02T03:04:05.123456Z",
		`"2026-01-02T05:04:05.000001+02:00"`: "2026-01-02T03:04:05.000001Z",
		`-1`:                                 "1969-12-31T23:59:59.999999Z",
		`null`:                               "0001-01-01T00:00:00.000000Z",
		`0`:                                  "0001-01-01T00:00:00.000000Z",
	} {
		body, err := event.Decode(event.KindReleased, `{"run_at":`+text+`}`, nil, new(event.Worker))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := body.(*event.Released).RunAt; event.FormatTime(got) != want || got.Location() != time.UTC {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// A body that decodes can be encoded again, in both forms, without loss.
func FuzzDecode(f *testing.F) {
	for _, e := range ledgertest.SampleEvents(f) {
		stored, digest := encoded(e.Body, event.Worker{}, false)
		f.Add(int(e.Kind()), stored, digest)
		public, _ := encoded(e.Body, event.Worker{Boot: "b", PID: 1}, true)
		f.Add(int(e.Kind()), public, []byte(nil))
	}
	f.Add(1, []byte(`{"max_runtime":0.0000001,"requires":[null],"tags":{"a":null,"a":"\ud800"}}`),
		[]byte("short"))
	f.Add(3, []byte("{\"progress\":-0e-9 ,\r\n\"note\":\"\xff\"}"), []byte(nil))
	f.Fuzz(func(t *testing.T, kind int, data, digest []byte) {
		var who event.Worker
		body, err := event.Decode(event.Kind(kind), string(data), digest, &who)
		if err != nil {
			return
		}
		if len(data) > 0 && !json.Valid(data) {
			t.Fatalf("not JSON: %s", data)
		}
		for _, public := range []bool{false, true} {
			text, digest := encoded(body, who, public)
			var again event.Worker
			got, err := event.Decode(event.Kind(kind), string(text), digest, &again)
			if err != nil || !reflect.DeepEqual(got, body) || public && again != who {
				t.Fatalf("%s\nread as  %+v\nwritten  %s\nread as  %+v, %v", data, body, text, got, err)
			}
		}
	})
}

// An event that was decoded from JSON is encoded to JSON that decodes to the same event.
func FuzzEventJSON(f *testing.F) {
	for i, e := range ledgertest.SampleEvents(f) {
		e.Pos, e.At = int64(i), ledgertest.Epoch
		text, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var e, again event.Event
		if err := e.UnmarshalJSON(text); err != nil {
			return
		}
		written, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("%s\nread as %+v\ncannot be written: %v", text, e, err)
		}
		if err := json.Unmarshal(written, &again); err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("%s\nread as %+v\nwritten %s\nread as %+v, %v", text, e, written, again, err)
		}
	})
}
