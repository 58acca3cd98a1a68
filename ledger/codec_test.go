package ledger_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
)

// bodies has, for each kind, a body with every field set.
func bodies() []ledger.Body {
	at := ledgertest.Epoch.Add(123456 * time.Microsecond)
	half, zero, code := 0.5, 0, 137
	const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	output := ledger.Output{StdoutSHA256: digest, StdoutBytes: 3, StderrSHA256: digest, StderrBytes: 1 << 40}
	return []ledger.Body{
		&ledger.Enqueued{Queue: "mail", Priority: -7, RunAt: at, MaxAttempts: 5, MaxRuntime: 90*time.Minute + 1500*time.Microsecond, Version: "v2",
			Requires: []string{"gpu", "a \"b\" <c>"}, Key: "order-17/\u2028é", Tags: map[string]string{"b": "2", "a": "\x00\n\\"}, PayloadSHA256: digest, PayloadBytes: 1 << 20},
		&ledger.Claimed{LeaseUntil: at, MaxRuntime: time.Microsecond},
		&ledger.Heartbeat{LeaseUntil: at, Progress: &half, Note: "half\tdone"},
		&ledger.Succeeded{ResultSHA256: digest, ResultBytes: 3, ExitCode: &zero, Output: output},
		&ledger.Failed{ErrorCode: "exit", ErrorDetail: "line 1\nline 2 \x1b[31m", ExitCode: &code, Signal: "SIGKILL", RetryAt: at, Output: output},
		&ledger.Released{Reason: "shutdown", RunAt: at, Snooze: true, Output: output},
		&ledger.Reclaimed{Reason: ledger.LeaseExpired, LastHeartbeat: at, LeaseUntil: at.Add(time.Second), RetryAt: at.Add(time.Minute)},
		&ledger.Cancelled{Reason: "no longer needed"},
		&ledger.Retried{Reason: "fixed", RunAt: at},
		&ledger.Rescheduled{RunAt: at, Priority: 100, Reason: "urgent"},
		&ledger.Refused{Command: "succeed", Why: "the lease was lost", OfferedSHA256: digest, OfferedBytes: 12},
		&ledger.Erased{Bodies: 2, Bytes: 4096, Reason: "asked to"},
		&ledger.QueuePaused{Queue: "mail", Reason: "incident 12"},
		&ledger.QueueResumed{Queue: "mail", Reason: "over"},
		&ledger.WorkerStarted{Queues: []string{"mail", "video"}, Capabilities: []string{"gpu"}},
		&ledger.WorkerStopped{},
		&ledger.Rebuilt{Jobs: 4, Changed: 3, Missing: 2, Extra: 1},
		&ledger.Restored{From: "backup of Monday.db", Events: 4711, Lost: &code},
		&ledger.Imported{From: "export.jsonl", Events: 1000, MissingBodies: 2},
		&ledger.Stopped{ExitCode: &code, Signal: "SIGKILL", Why: ledger.WhyCancelled},
		&ledger.TakenOver{LeaseUntil: at},
	}
}

// samples has two events of each kind, one with every field of its body set and one with none.
func samples(t testing.TB) (list []ledger.Event) {
	t.Helper()
	for i, full := range bodies() {
		if full.Kind() != ledger.Kinds()[i] {
			t.Fatalf("sample %d is of kind %s", i, full.Kind())
		}
		value := reflect.ValueOf(full).Elem()
		for j := range value.NumField() {
			if value.Field(j).IsZero() {
				t.Fatalf("sample of %s: the field %s is not set", full.Kind(), value.Type().Field(j).Name)
			}
		}
		empty := reflect.New(value.Type()).Interface().(ledger.Body)
		list = append(list, ledger.Event{Body: full}, ledger.Event{Body: empty})
	}
	if len(list) != 2*len(ledger.Kinds()) {
		t.Fatalf("samples of %d kinds, want %d", len(list)/2, len(ledger.Kinds()))
	}
	return list
}

// storable is samples for a ledger: commands lets no NUL in, and PostgreSQL takes none.
func storable(t testing.TB) []ledger.Event {
	t.Helper()
	list := samples(t)
	if ledgertest.OnPostgres(t) {
		list[0].Body.(*ledger.Enqueued).Tags["a"] = "\n\\"
	}
	return list
}

func showsProcess(k ledger.Kind) bool {
	return k == ledger.KindClaimed || k == ledger.KindTakenOver || k == ledger.KindWorkerStarted || k == ledger.KindWorkerStopped
}

func TestABodyIsReadAsItWasWritten(t *testing.T) {
	who := ledger.Worker{Name: "w", Boot: "01JBOOT", Host: "höst", PID: 4711, Version: "v2"}
	for _, e := range samples(t) {
		for _, public := range []bool{false, true} {
			text, digest := ledger.Encode(e.Body, who, public)
			if len(text) > 0 && !json.Valid(text) {
				t.Errorf("%s: not JSON: %s", e.Kind(), text)
			}
			got := ledger.Worker{Name: "w"}
			body, err := ledger.Decode(e.Kind(), text, digest, &got)
			if err != nil || !reflect.DeepEqual(body, e.Body) {
				t.Errorf("%s: %s\nis read as %+v, %v\nwant       %+v", e.Kind(), text, body, err, e.Body)
			}
			if public && showsProcess(e.Kind()) != (got == who) {
				t.Errorf("%s: %s\nthe process is %+v", e.Kind(), text, got)
			}
		}
	}
}

func TestAStoredEventIsReadAsItWasWritten(t *testing.T) {
	s := open(t)
	want := storable(t)
	write(t, s, func(tx *ledger.Tx) error {
		for i := range want {
			e := &want[i]
			e.Pos, e.At, e.Actor = tx.Next(), tx.At(), "cli:ann@höst"
			if err := tx.Append(t.Context(), *e); err != nil {
				return err
			}
		}
		return nil
	})
	for _, e := range want { // what no event lacks is read as what is usual
		switch body := e.Body.(type) {
		case *ledger.Enqueued:
			if body.MaxAttempts == 0 {
				body.RunAt, body.MaxAttempts = e.At, 5
			}
		case *ledger.Claimed:
			if body.LeaseUntil.IsZero() {
				body.LeaseUntil = e.At.Add(time.Minute)
			}
		case *ledger.Heartbeat:
			if body.LeaseUntil.IsZero() {
				body.LeaseUntil = e.At.Add(time.Minute)
			}
		}
	}
	if got := events(t, s, ledger.Filter{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %s\nwant %s", shown(got), shown(want))
	}
}

func TestWhatIsUsualIsNotStored(t *testing.T) {
	s := open(t)
	var want []ledger.Event
	write(t, s, func(tx *ledger.Tx) error {
		want = nil
		for _, body := range []ledger.Body{
			&ledger.Enqueued{RunAt: tx.At(), MaxAttempts: 5}, &ledger.Enqueued{RunAt: tx.At().Add(1000), MaxAttempts: 4},
			&ledger.Claimed{LeaseUntil: tx.At().Add(time.Minute)}, &ledger.Claimed{LeaseUntil: tx.At().Add(time.Hour), MaxRuntime: time.Second},
			&ledger.Heartbeat{LeaseUntil: tx.At().Add(time.Minute)}, &ledger.Heartbeat{LeaseUntil: tx.At().Add(time.Hour)},
		} {
			want = append(want, ledger.Event{Pos: tx.Next(), At: tx.At(), Actor: "cli:ann@host", Body: body})
			if err := tx.Append(t.Context(), want[len(want)-1]); err != nil {
				return err
			}
		}
		return nil
	})
	if got := events(t, s, ledger.Filter{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %s\nwant %s", shown(got), shown(want))
	}
	var stored []bool
	read(t, s, func(tx *ledger.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT data IS NOT NULL FROM events ORDER BY pos`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			stored = append(stored, false)
			if err := rows.Scan(&stored[len(stored)-1]); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if want := []bool{false, true, false, true, false, true}; !reflect.DeepEqual(stored, want) {
		t.Errorf("there is data: %v, want %v", stored, want)
	}
}

func TestThePublicFormOfEventsStaysReadable(t *testing.T) {
	golden := filepath.Join("..", "testdata", "events.golden.jsonl")
	var list []ledger.Event
	var out bytes.Buffer
	write := json.NewEncoder(&out)
	write.SetEscapeHTML(false)
	for i, e := range samples(t) {
		e.Pos, e.At, e.Actor = int64(i+1), ledgertest.Epoch.Add(time.Duration(i)*time.Second), "cli:ann@host"
		if i%2 == 0 { // the full ones have a full envelope too
			e.Job, e.Seq, e.From, e.To = "01JJOB0000000000000000000A", int64(i+1), ledger.Queued, ledger.State(i%6+1)
			e.Worker, e.Token, e.Attempt = ledger.Worker{Name: "w"}, "01JTOKEN00000000000000000A", 3
			if showsProcess(e.Kind()) {
				e.Worker = ledger.Worker{Name: "w", Boot: "01JBOOT000000000000000000A", Host: "host", PID: 4711, Version: "v2"}
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
		var e ledger.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || !reflect.DeepEqual(e, list[i]) {
			t.Errorf("line %d is read as %+v, %v", i+1, e, err)
		}
	}
}

func TestADataTextThatIsNotOursIsRefused(t *testing.T) {
	for _, c := range []struct {
		kind ledger.Kind
		data string
		want error
	}{
		{0, `{}`, ledger.ErrUnknownKind},
		{-1, `{}`, ledger.ErrUnknownKind},
		{99, `{}`, ledger.ErrUnknownKind},
		{ledger.KindCancelled, `{"reason":"a","more":1}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"Reason":"a"}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason":"a","reason":"b"}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason":null,"reason":null}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"boot":"b"}`, ledger.ErrDamaged},
		{ledger.KindWorkerStopped, `{"queue":"mail"}`, ledger.ErrDamaged},
		{ledger.KindCancelled, ` `, ledger.ErrDamaged},
		{ledger.KindCancelled, `null`, ledger.ErrDamaged},
		{ledger.KindCancelled, `[]`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{}}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{} {}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason"}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason":}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason" "a"}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{reason:"a"}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{'reason':'a'}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason":"a",}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{,"reason":"a"}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason":"a}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason":"\x"}`, ledger.ErrDamaged},
		{ledger.KindCancelled, "{\"reason\":\"a\nb\"}", ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason":a}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason":1}`, ledger.ErrDamaged},
		{ledger.KindCancelled, `{"reason":"a"x}`, ledger.ErrDamaged},
		{ledger.KindErased, `{"bodies":1.5}`, ledger.ErrDamaged},
		{ledger.KindErased, `{"bodies":"1"}`, ledger.ErrDamaged},
		{ledger.KindErased, `{"bodies":+1}`, ledger.ErrDamaged},
		{ledger.KindErased, `{"bodies":01}`, ledger.ErrDamaged},
		{ledger.KindErased, `{"bodies":1e3}`, ledger.ErrDamaged},
		{ledger.KindErased, `{"bodies":9223372036854775808}`, ledger.ErrDamaged},
		{ledger.KindSucceeded, `{"exit_code":0x1}`, ledger.ErrDamaged},
		{ledger.KindHeartbeat, `{"progress":NaN}`, ledger.ErrDamaged},
		{ledger.KindHeartbeat, `{"progress":Infinity}`, ledger.ErrDamaged},
		{ledger.KindHeartbeat, `{"progress":.5}`, ledger.ErrDamaged},
		{ledger.KindHeartbeat, `{"progress":0x1p-1}`, ledger.ErrDamaged},
		{ledger.KindHeartbeat, `{"progress":1e999}`, ledger.ErrDamaged},
		{ledger.KindReleased, `{"snooze":1}`, ledger.ErrDamaged},
		{ledger.KindReleased, `{"snooze":TRUE}`, ledger.ErrDamaged},
		{ledger.KindReleased, `{"run_at":"yesterday"}`, ledger.ErrDamaged},
		{ledger.KindReleased, `{"run_at":"2026-01-02T03:04:05"}`, ledger.ErrDamaged},
		{ledger.KindReleased, `{"run_at":1.5}`, ledger.ErrDamaged},
		{ledger.KindReleased, `{"run_at":9223372036854775807}`, ledger.ErrDamaged},
		{ledger.KindReleased, `{"run_at":-9223372036854775808}`, ledger.ErrDamaged},
		{ledger.KindClaimed, `{"max_runtime":"1h"}`, ledger.ErrDamaged},
		{ledger.KindClaimed, `{"max_runtime":nan}`, ledger.ErrDamaged},
		{ledger.KindClaimed, `{"max_runtime":1e30}`, ledger.ErrDamaged},
		{ledger.KindEnqueued, `{"requires":"gpu"}`, ledger.ErrDamaged},
		{ledger.KindEnqueued, `{"requires":["gpu"}`, ledger.ErrDamaged},
		{ledger.KindEnqueued, `{"tags":["a"]}`, ledger.ErrDamaged},
		{ledger.KindEnqueued, `{"tags":{"a":1}}`, ledger.ErrDamaged},
		{ledger.KindEnqueued, `{"tags":{"a":null}}`, ledger.ErrDamaged},
		{ledger.KindEnqueued, `{"tags":{"a":"1","a":"2"}}`, ledger.ErrDamaged},
		{ledger.KindEnqueued, `{"tags":{"a":"1","\u0061":"1"}}`, ledger.ErrDamaged},
		{ledger.KindEnqueued, `{"tags":{"a":"1",}}`, ledger.ErrDamaged},
	} {
		if body, err := ledger.Decode(c.kind, []byte(c.data), nil, new(ledger.Worker)); !errors.Is(err, c.want) {
			t.Errorf("%s %s: got %+v, %v, want %v", c.kind, c.data, body, err, c.want)
		}
	}
}

func TestAnEventTextThatIsNotOursIsRefused(t *testing.T) {
	good := `{"pos":1,"job":null,"seq":null,"kind":"restored","at":"2026-01-02T03:04:05Z","actor":"a","worker":null,"token":null,"attempt":null,"from_state":null,"to_state":null,"data":{"from":"x"}}`
	var e ledger.Event
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
		before := ledger.Event{Actor: "before"}
		e := before
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("accepted: %s", text)
		}
		if !reflect.DeepEqual(e, before) {
			t.Errorf("changed by what was refused: %+v", e)
		}
	}
}

func TestATimeIsReadInEitherForm(t *testing.T) {
	for text, want := range map[string]string{
		`1767323045000001`:                   "2026-01-02T03:04:05.000001Z",
		`"2026-01-02T03:04:05Z"`:             "2026-01-02T03:04:05.000000Z",
		`"2026-01-02T03:04:05.123456789Z"`:   "2026-01-02T03:04:05.123456Z",
		`"2026-01-02T05:04:05.000001+02:00"`: "2026-01-02T03:04:05.000001Z",
		`-1`:                                 "1969-12-31T23:59:59.999999Z",
		`null`:                               "0001-01-01T00:00:00.000000Z",
		`0`:                                  "0001-01-01T00:00:00.000000Z",
	} {
		body, err := ledger.Decode(ledger.KindReleased, []byte(`{"run_at":`+text+`}`), nil, new(ledger.Worker))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := body.(*ledger.Released).RunAt; ledger.FormatTime(got) != want || got.Location() != time.UTC {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// What decodes is a body that both forms keep.
func FuzzDecode(f *testing.F) {
	for _, e := range samples(f) {
		stored, digest := ledger.Encode(e.Body, ledger.Worker{}, false)
		f.Add(int(e.Kind()), stored, digest)
		public, _ := ledger.Encode(e.Body, ledger.Worker{Boot: "b", PID: 1}, true)
		f.Add(int(e.Kind()), public, []byte(nil))
	}
	f.Add(1, []byte(`{"max_runtime":0.0000001,"requires":[null],"tags":{"a":null,"a":"\ud800"}}`), []byte("short"))
	f.Add(3, []byte("{\"progress\":-0e-9 ,\r\n\"note\":\"\xff\"}"), []byte(nil))
	f.Fuzz(func(t *testing.T, kind int, data, digest []byte) {
		var who ledger.Worker
		body, err := ledger.Decode(ledger.Kind(kind), data, digest, &who)
		if err != nil {
			return
		}
		if len(data) > 0 && !json.Valid(data) {
			t.Fatalf("not JSON: %s", data)
		}
		for _, public := range []bool{false, true} {
			text, digest := ledger.Encode(body, who, public)
			var again ledger.Worker
			got, err := ledger.Decode(ledger.Kind(kind), text, digest, &again)
			if err != nil || !reflect.DeepEqual(got, body) || public && again != who {
				t.Fatalf("%s\nread as  %+v\nwritten  %s\nread as  %+v, %v", data, body, text, got, err)
			}
		}
	})
}

// What is read as an event is written as one that is read alike.
func FuzzEventJSON(f *testing.F) {
	for i, e := range samples(f) {
		e.Pos, e.At = int64(i), ledgertest.Epoch
		text, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var e, again ledger.Event
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
