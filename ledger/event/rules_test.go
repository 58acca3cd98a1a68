package event_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
)

// TestBodiesSayTheirFields: the tags of a body name all of its JSON fields in the order in which they are
// written, and each field is written by its own name, in the form of its type.
func TestBodiesSayTheirFields(t *testing.T) {
	for i, e := range ledgertest.SampleEvents(t) {
		if i%2 == 1 {
			continue // no field set
		}
		kind := e.Kind()
		type field struct {
			name  string
			value reflect.Value
		}
		var fields []field
		var walk func(v reflect.Value)
		walk = func(v reflect.Value) {
			for i := range v.NumField() {
				f := v.Type().Field(i)
				tag, ok := f.Tag.Lookup("event")
				switch {
				case ok && f.IsExported():
					name, _, _ := strings.Cut(tag, ",")
					fields = append(fields, field{name, v.Field(i)})
				case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]():
					walk(v.Field(i)) // Output and Backoff
				default:
					t.Errorf("%s: the field %s has no tag", kind, f.Name)
				}
			}
		}
		walk(reflect.ValueOf(e.Body).Elem())
		var want []string
		for _, f := range fields {
			want = append(want, f.name)
		}
		all := event.AppendPublic(nil, e.Body, event.Worker{})
		got := namesIn(t, all)
		if kind.ShowsProcess() {
			got = got[:len(got)-4] // boot, host, pid, version
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: it is written as %v, and its tags say %v", kind, got, want)
		}
		for _, f := range fields {
			empty := reflect.New(reflect.TypeOf(e.Body).Elem()).Interface().(event.Body)
			written := string(event.AppendPublic(nil, empty, event.Worker{}))
			full := reflect.New(f.value.Type()).Elem()
			full.Set(f.value)
			f.value.SetZero()
			without := string(event.AppendPublic(nil, e.Body, event.Worker{}))
			f.value.Set(full)
			if was, is := value(t, all, f.name), value(t, []byte(without), f.name); was == is || was == "" {
				t.Errorf("%s: the field %s is written as %s with and without a value", kind, f.name, was)
			} else if text := value(t, []byte(written), f.name); is != text {
				t.Errorf("%s: without a value, %s is written as %q, in an empty body as %q", kind, f.name, is, text)
			}
			if is := value(t, all, f.name); !strings.ContainsAny(is[:1], formOf(f.value)) {
				t.Errorf("%s: %s is written as %s", kind, f.name, is)
			}
		}
	}
}

// formOf returns the characters with which the JSON of v may begin.
func formOf(v reflect.Value) string {
	switch v.Interface().(type) {
	case time.Time:
		return `"`
	case time.Duration:
		return "0123456789"
	}
	switch v.Kind() {
	case reflect.String:
		return `"`
	case reflect.Slice:
		return "["
	case reflect.Map:
		return "{"
	case reflect.Bool:
		return "tf"
	case reflect.Int, reflect.Int64, reflect.Pointer, reflect.Float64:
		return "-0123456789"
	}
	return ""
}

// value returns the JSON of a member of an object; "" if it is not there.
func value(t *testing.T, object []byte, name string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatal(err)
	}
	return string(members[name])
}

// namesIn returns the names of the members of an object, in order.
func namesIn(t *testing.T, object []byte) (names []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(object)))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return names
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		default:
			if depth == 1 {
				names = append(names, token.(string))
				var skip json.RawMessage
				if err := d.Decode(&skip); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestRulesOfFields: a value that the tag of its field does not allow is refused by that name.
func TestRulesOfFields(t *testing.T) {
	at, half := ledgertest.Epoch, 1.5
	for want, body := range map[string]event.Body{
		`queue_paused with queue ""`:                   &event.QueuePaused{},
		`queue_paused with queue "a b"`:                &event.QueuePaused{Queue: "a b"},
		`queue_limited with running "-1"`:              &event.QueueLimited{Queue: "q", Running: -1},
		`queue_limited with ageing "2678400000000001"`: &event.QueueLimited{Queue: "q", Ageing: 744*time.Hour + 1},
		`rebuilt with jobs "9007199254740993"`:         &event.Rebuilt{Jobs: 1<<53 + 1},
		`schedule_skipped with why "no"`: &event.ScheduleSkipped{Name: "n", From: at, To: at, Count: 1,
			Why: "no"},
		`worker_started with queues ""`: &event.WorkerStarted{},
		`sealing with origin ""`:        &event.Sealing{},
	} {
		e := event.Event{At: at, Actor: "cli:ann", Body: body}
		if e.Kind().ShowsProcess() {
			e.Worker = event.Worker{Name: "w", Boot: "b"}
			e.Actor = "worker:w"
		}
		if err := e.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for want, body := range map[string]event.Body{"lease_until": &event.Heartbeat{Progress: &half},
		"count": &event.ScheduleSkipped{Name: "n", From: at, To: at}, "": &event.Erased{}} {
		if got := event.MissingField(body); got != want {
			t.Errorf("%s: %q is missing, want %q", body.Kind(), got, want)
		}
	}
}

// A tag is a literal, so the bounds in tags repeat those that commands go by.
func TestBoundsOfFieldsAreThoseOfCommands(t *testing.T) {
	numbers := map[reflect.Type]int64{reflect.TypeFor[event.QueueLimited](): event.MaxRunning}
	times := map[reflect.Type]time.Duration{reflect.TypeFor[event.QueueLimited](): event.MaxRatePer,
		reflect.TypeFor[event.ArchivePolicy](): event.MaxArchiveAge}
	checked := 0
	for body, longest := range times {
		for i := range body.NumField() {
			field := body.Field(i)
			_, most, ok := strings.Cut(field.Tag.Get("event"), "max=")
			if !ok {
				continue
			}
			checked++
			want := fmt.Sprint(numbers[body])
			if field.Type == reflect.TypeFor[time.Duration]() {
				want = fmt.Sprintf("%.0fh", longest.Hours())
			}
			if most != want {
				t.Errorf("%s.%s: max=%s, want %s", body.Name(), field.Name, most, want)
			}
		}
	}
	if checked != 11 {
		t.Errorf("%d fields with a bound, want 11", checked)
	}
}
