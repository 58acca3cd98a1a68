package segment_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"jobledger/ledger/event"
	"jobledger/ledger/segment"
)

var update = flag.Bool("update", false, "rewrite the parts in testdata/segment; the file itself is for ever")

// What follows from a file is the same for ever: of a file that was written once, these are its parts.
func TestPartsAreForEver(t *testing.T) {
	r := segment.Range{Lo: 512, Hi: 1024}
	dir := filepath.Join("..", "..", "testdata", "segment")
	path := filepath.Join(dir, r.Name())
	_, parts, err := segment.CheckFile(path, r)
	if errors.Is(err, os.ErrNotExist) && *update {
		if _, parts, err = segment.Create(dir, r, eventsOf(r), accept); err == nil {
			err = os.Chmod(path, 0o644)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), r.Name())
	if err := segment.CheckParts(copied, parts); err != nil {
		t.Fatal(err)
	}
	for end, want := range parts.Digests() {
		text, err := os.ReadFile(segment.PartName(copied, end))
		if err != nil {
			t.Fatal(err)
		}
		golden := segment.PartName(path, end)
		if *update {
			if err := os.WriteFile(golden, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		there, err := os.ReadFile(golden)
		if err != nil || !bytes.Equal(there, text) || fmt.Sprintf("%x", sha256.Sum256(there)) != want {
			t.Errorf("%s does not match the file: %v", golden, err)
		}
	}
}

// summary is the text of a summary, as a reader has it.
type summary struct {
	Lo, Hi     int64
	FirstAt    time.Time `json:"first_at"`
	LastAt     time.Time `json:"last_at"`
	Kinds      map[string]int64
	Days       map[string]map[string]int64
	Moved      map[string]map[string]int64
	Actors     []string
	ErrorCodes []string `json:"error_codes"`
	Groups     []string
	Hosts      []string
	Queues     []string
	Schedules  []string
	TagKeys    []string `json:"tag_keys"`
	Workers    []string
	IDs        map[string]*string
	Bloom      []byte
}

// has reports whether the filter may have a text.
func (s *summary) has(text string) bool {
	sum := sha256.Sum256([]byte(text))
	a, b := binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])|1
	for range 7 {
		if n := a % uint64(8*len(s.Bloom)); s.Bloom[n/8]&(1<<(n%8)) == 0 {
			return false
		}
		a += b
	}
	return true
}

// summaryOf returns the summary of a file with these events.
func summaryOf(t *testing.T, r segment.Range, events []event.Event) (s summary) {
	t.Helper()
	var out bytes.Buffer
	w, err := segment.NewWriter(&out, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.Add(&e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, parts, err := segment.Check(&out, r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), r.Name())
	if err := segment.CheckParts(path, parts); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(segment.PartName(path, "sum"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d := json.NewDecoder(file)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("there is more behind the summary: %v", err)
	}
	return s
}

// A summary says what a plain reading of the lines does, and the sum of all is how the jobs are.
func TestSummaryIsOfItsLines(t *testing.T) {
	states := make(map[string]map[string]int64)
	last := int64(len(night())) / segment.MemberLines * segment.MemberLines
	for lo := int64(0); lo < last; {
		r := segment.Range{Lo: lo, Hi: min(last, lo+5*segment.MemberLines)}
		events := contents(r)
		s := summaryOf(t, r, events)
		own := events[slices.IndexFunc(events, func(e event.Event) bool { return e.Pos > r.Lo }):]
		kinds, days := make(map[string]int64), make(map[string]int64)
		for _, e := range own {
			kinds[e.Kind().String()]++
			days[e.At.UTC().Format(time.DateOnly)]++
		}
		got := make(map[string]int64)
		for day, counts := range s.Days {
			got[day] = counts["events"]
		}
		if s.Lo != r.Lo || s.Hi != r.Hi || !s.FirstAt.Equal(own[0].At) || !s.LastAt.Equal(own[len(own)-1].At) ||
			!maps.Equal(s.Kinds, kinds) || !maps.Equal(got, days) {
			t.Errorf("%+v: got %+v", r, s)
		}
		actors, ids, absent := make(map[string]bool), []string{}, 0
		for _, e := range events {
			actors[e.Actor] = true
			first, ok := e.Body.(*event.Enqueued)
			if !ok {
				continue
			}
			ids = append(ids, string(e.Job))
			if !slices.Contains(s.Queues, first.Queue) || first.Key != "" && !s.has("key:"+first.Key) {
				t.Errorf("the job %s is not in the summary", e.Job)
			}
			for key, value := range first.Tags {
				if !s.has("tag:"+key+"="+value) || !slices.Contains(s.TagKeys, key) {
					t.Errorf("the tag %s=%s is not in the summary", key, value)
				}
			}
			if s.has("key:none of " + string(e.Job)) {
				absent++
			}
		}
		if !slices.Equal(s.Actors, slices.Sorted(maps.Keys(actors))) || absent > 1+len(ids)/25 ||
			*s.IDs["min"] != slices.Min(ids) || *s.IDs["max"] != slices.Max(ids) {
			t.Errorf("actors %v, ids %v, %d of %d keys that are not there", s.Actors, s.IDs, absent, len(ids))
		}
		for queue, moved := range s.Moved {
			if states[queue] == nil {
				states[queue] = make(map[string]int64)
			}
			for state, n := range moved {
				if states[queue][state] += n; states[queue][state] == 0 {
					delete(states[queue], state)
				}
			}
		}
		lo = r.Hi
	}
	queueOf, want := make(map[event.JobID]string), make(map[string]map[string]int64)
	state := make(map[event.JobID]event.State)
	for _, e := range night()[:last] {
		if first, ok := e.Body.(*event.Enqueued); ok {
			queueOf[e.Job] = first.Queue
		}
		if e.Kind().HasSeq() {
			state[e.Job] = e.To
		}
	}
	for id, now := range state {
		if want[queueOf[id]] == nil {
			want[queueOf[id]] = make(map[string]int64)
		}
		want[queueOf[id]][now.String()]++
	}
	if !reflect.DeepEqual(states, want) {
		t.Errorf("the moves add up to %v, want %v", states, want)
	}
}

// Of more than 256 names a summary has none, so that it stays small.
func TestSummaryIsSmall(t *testing.T) {
	r := segment.Range{Hi: 512}
	var events []event.Event
	for i := range int64(512) {
		e := event.Event{Pos: i + 1, At: time.Unix(1+i, 0), Actor: string(rune('a'+i%26)) + string(rune('a'+i/26)),
			Body: &event.QueuePaused{Queue: "mail"}}
		events = append(events, e)
	}
	s := summaryOf(t, r, events)
	if s.Actors != nil || len(s.Queues) != 1 || s.IDs["min"] != nil || s.Workers == nil {
		t.Errorf("got %+v", s)
	}
}
