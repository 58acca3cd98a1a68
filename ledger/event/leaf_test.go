package event_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// awkward are texts that encoders escape in different ways.
var awkward = []string{
	"<a href=\"x\">&amp;</a>", "<&>", `back\slash`, "\x00\x01\b\f\n\r\t\x1f\x7f", "\u0080\u009f\u00a0é",
	"\u2028\u2029", "\u202e\u200b\ufeff", "\ufffd", "\xff\xc0\xaf", "\xed\xa0\x80", "\U0001f600\U0010ffff",
	"e\u0301", " ", "/",
}

// allAwkward is all of them in one text.
var allAwkward = strings.Join(awkward, "|")

// leaves returns leaves by name: one of an event of each kind with an empty body, and one for each field of
// the body and of the envelope, set to every awkward text and to extreme numbers and times. The other fields
// of the body are empty, so a field that is added later changes no leaf.
func leaves(t *testing.T) (names []string, lines map[string][]byte) {
	lines = make(map[string][]byte)
	for i, e := range ledgertest.SampleEvents(t) {
		if i%2 == 0 {
			continue // all fields set
		}
		e.Pos, e.At, e.Actor = 1, ledgertest.Epoch, "cli:ann@host"
		add := func(field string, n int) {
			name := fmt.Sprintf("%s.%s/%d", e.Kind(), field, n)
			names = append(names, name)
			lines[name] = e.AppendLeaf(nil)
		}
		add("empty", 0)
		forEach(reflect.ValueOf(e.Body).Elem(), add)
		if e.Kind() == event.KindEnqueued || showsProcess(e.Kind()) {
			forEach(reflect.ValueOf(&e).Elem(), add)
		}
		if e.Kind() == event.KindEnqueued {
			for n, text := range awkward {
				e.Actor = text
				add("awkward", n)
			}
		}
	}
	return names, lines
}

// forEach sets each field of the struct v to each of its test values, calls f, and resets the field.
func forEach(v reflect.Value, f func(field string, n int)) {
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		for n, value := range testValues(field.Type()) {
			before := reflect.New(field.Type()).Elem()
			before.Set(field)
			field.Set(value)
			f(name, n)
			field.Set(before)
		}
		if field.Kind() == reflect.Struct && field.Type() != reflect.TypeFor[time.Time]() {
			forEach(field, func(inner string, n int) { f(name+"."+inner, n) })
		}
	}
}

// testValues returns the test values of a field of type t, or none if other fields cover the type.
func testValues(t reflect.Type) (values []reflect.Value) {
	add := func(v any) { values = append(values, reflect.ValueOf(v).Convert(t)) }
	switch {
	case t == reflect.TypeFor[time.Time]():
		for _, at := range []time.Time{{}, time.UnixMicro(1), time.UnixMicro(-1),
			time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
			time.Date(2026, 11, 22, 5, 6, 7, 80000, time.FixedZone("", 3600))} {
			add(at)
		}
	case t == reflect.TypeFor[time.Duration]():
		for _, d := range []time.Duration{0, time.Microsecond, 1500 * time.Millisecond, time.Hour,
			876000*time.Hour + time.Microsecond} {
			add(d)
		}
	case t == reflect.TypeFor[event.State]():
		for _, s := range event.States() {
			add(s)
		}
	case t.Kind() == reflect.String:
		add("<&>")
		add(allAwkward)
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64} {
			add(n)
		}
	case t.Kind() == reflect.Bool:
		add(false)
		add(true)
	case t == reflect.TypeFor[*int]():
		for _, n := range []int{0, -1, 255} {
			add(&n)
		}
	case t == reflect.TypeFor[*float64]():
		for _, x := range []float64{0, 1, 0.1, 1e-9, 1.0 / 3} {
			add(&x)
		}
	case t.Kind() == reflect.Float64:
		for _, x := range []float64{0, 1, 0.1, 1e-9, 1.0 / 3} {
			add(x)
		}
	case t == reflect.TypeFor[[]string]():
		add(awkward)
	case t == reflect.TypeFor[map[string]string]():
		dict := make(map[string]string)
		for i, s := range awkward {
			if utf8.ValidString(s) { // two keys that are not UTF-8 could not be kept in order
				dict[s] = awkward[len(awkward)-1-i]
			}
		}
		add(dict)
	}
	return values
}

// TestLeavesNeverChange compares every leaf with its frozen copy. Proofs depend on these bytes, so a line of
// the golden file is never rewritten; -update only adds the lines of new kinds and fields. Each line has a
// name, the RFC 6962 hash of the leaf, and the leaf.
func TestLeavesNeverChange(t *testing.T) {
	golden := filepath.Join("..", "..", "testdata", "leaves.golden")
	text, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	frozen := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		frozen[name] = rest
	}
	names, lines := leaves(t)
	var added bytes.Buffer
	for _, name := range names {
		leaf := lines[name]
		got := fmt.Sprintf("%x %s", sha256.Sum256(append([]byte{0}, leaf...)), leaf)
		want, ok := frozen[name]
		delete(frozen, name)
		switch {
		case !ok && *update:
			fmt.Fprintf(&added, "%s %s\n", name, got)
		case !ok:
			t.Errorf("%s is not in %s; add it with -update", name, golden)
		case got != want:
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		if bytes.ContainsFunc(leaf, func(r rune) bool { return r < ' ' || r > '~' && r != '\x7f' }) {
			t.Errorf("%s is not one line of ASCII: %s", name, leaf)
		}
		if !json.Valid(leaf) {
			t.Errorf("%s is not JSON: %s", name, leaf)
		}
	}
	for name := range frozen {
		t.Errorf("%s was frozen and is gone", name)
	}
	if added.Len() > 0 {
		if err := os.WriteFile(golden, append(text, added.Bytes()...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeafIsThePublicLineInASCII: a leaf has the same content as the public form.
func TestLeafIsThePublicLineInASCII(t *testing.T) {
	for _, s := range awkward {
		e := event.Event{Pos: 1, At: ledgertest.Epoch, Actor: s, Body: &event.Cancelled{Reason: s}}
		public, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var fromLeaf, fromPublic event.Event
		if err := json.Unmarshal(e.AppendLeaf(nil), &fromLeaf); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(public, &fromPublic); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(fromLeaf, fromPublic) {
			t.Errorf("%q: the leaf says %+v, the public form %+v", s, fromLeaf, fromPublic)
		}
	}
}

// FuzzText compares the strings in an event's public form with the output of package encoding/json.
func FuzzText(f *testing.F) {
	for _, s := range awkward {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := event.Event{Pos: 1, At: ledgertest.Epoch, Actor: s, Body: &event.WorkerStopped{}}
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{must(e.MarshalJSON()), e.AppendLeaf(nil)} {
			var got struct{ Actor json.RawMessage }
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			var read, meant string
			if err := json.Unmarshal(got.Actor, &read); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(want, &meant); err != nil {
				t.Fatal(err)
			}
			if read != meant {
				t.Fatalf("%q is written as %s and read as %q", s, got.Actor, read)
			}
		}
	})
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}
