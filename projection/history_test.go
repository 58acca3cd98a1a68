package projection_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
	"jobledger/projection/audit"
	"jobledger/projection/internal/historytest"
	"jobledger/projection/schedules"
)

var update = flag.Bool("update", false, "rewrite testdata/history/v*.golden; the .jsonl files are for ever")

// goldenText returns the golden form: one line for each item.
func goldenText(f *historytest.Fold) string {
	var out strings.Builder
	for n := int64(1); n < 1000; n++ {
		j, ok := f.Jobs[n]
		if !ok {
			continue
		}
		fmt.Fprintf(&out, "job %s\n", j.ID)
		line := func(name string, value any) {
			if text := fmt.Sprint(value); text != "" && text != "0" && text != "0s" && text != "[]" &&
				text != "map[]" && text != "false" && text != "<nil>" && text != "0001-01-01T00:00:00.000000Z" {
				fmt.Fprintf(&out, "    %-17s %s\n", name, text)
			}
		}
		line("n", j.N)
		line("seq", j.Seq)
		line("state", j.State)
		line("queue", j.Queue)
		line("priority", j.Priority)
		line("run_at", event.FormatTime(j.RunAt))
		line("key", j.Key)
		line("tags", fmt.Sprintf("%q", j.Tags))
		line("attempt", j.Attempt)
		line("failures", j.Failures)
		line("snoozes", j.Snoozes)
		line("max_attempts", j.MaxAttempts)
		line("max_runtime", j.MaxRuntime)
		line("version", j.Version)
		line("requires", fmt.Sprintf("%q", j.Requires))
		if j.Worker != (event.Worker{}) {
			line("worker", fmt.Sprintf("%+v", j.Worker))
		}
		line("lease_token", j.Token)
		line("claimed_at", event.FormatTime(j.ClaimedAt))
		line("heartbeat_at", event.FormatTime(j.HeartbeatAt))
		line("lease_expires_at", event.FormatTime(j.LeaseUntil))
		line("end_by", event.FormatTime(j.EndBy))
		line("finished_at", event.FormatTime(j.FinishedAt))
		if j.Progress != nil {
			line("progress", *j.Progress)
		}
		line("note", j.Note)
		line("error_code", j.ErrorCode)
		if j.ErrorDetail != "" {
			line("error_detail", fmt.Sprintf("%q", j.ErrorDetail))
		}
		line("erased", j.Erased)
		line("schedule", j.Schedule)
		line("tick", event.FormatTime(j.Tick))
		if j.Backoff != (event.Backoff{}) {
			line("backoff", fmt.Sprintf("%+v", j.Backoff))
		}
	}
	var names []string
	for name := range f.Queues {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		q := f.Queues[name]
		fmt.Fprintf(&out, "queue %s\n    paused %t since %s by %s, reason %q\n", name, q.Paused,
			event.FormatTime(q.Since), q.Actor, q.Reason)
	}
	for _, a := range f.Archived {
		fmt.Fprintf(&out, "archived %d to %d, %d carried in, root %s\n", a.Lo+1, a.Hi, a.CarriedIn, a.Root)
	}
	for _, s := range f.Schedules.Sorted() {
		spec, _ := event.AppendStored(nil, &s.Spec)
		fmt.Fprintf(&out, "schedule %s\n    next %s, last tick %s, last job %d\n", s.Spec.Name,
			event.FormatTime(s.Next), event.FormatTime(s.LastTick), s.LastJob)
		fmt.Fprintf(&out, "    paused %t since %s by %s, reason %q\n    %s\n", s.Paused, event.FormatTime(s.Since),
			s.Actor, s.Reason, spec)
	}
	if s := f.Sealing; s.On {
		fmt.Fprintf(&out, "sealing as %s with key %q since %s, event %d\n", s.Origin, s.Key,
			event.FormatTime(s.Since), s.Pos)
	}
	return out.String()
}

// TestHistoriesReplay folds the events that earlier programs wrote: their meaning never changes. The .jsonl
// files are never changed either; a new one is added for new kinds or fields.
func TestHistoriesReplay(t *testing.T) {
	for _, file := range histories(t) {
		name := strings.TrimSuffix(file, ".jsonl")
		t.Run(name, func(t *testing.T) {
			f := historytest.NewFold()
			for _, e := range historytest.Read(t, name+".jsonl") {
				if err := f.Add(e); err != nil {
					t.Fatalf("event %d: %v", e.Pos, err)
				}
				if to := f.Jobs[e.N].State; e.Seq != 0 && e.To != to {
					t.Errorf("event %d led to %s, and says %s", e.Pos, to, e.To)
				}
			}
			golden := filepath.Join(historytest.Dir(t), name+".golden")
			got := goldenText(f)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("events that were written long ago mean something else now.\ngot\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// histories are the names of the files whose meaning never changes.
func histories(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(historytest.Dir(t), "v*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	return names
}

// TestHistoriesAreComplete checks that the histories contain all kinds, and every field with a value.
func TestHistoriesAreComplete(t *testing.T) {
	kinds, fields := make(map[string]bool), make(map[string]bool)
	var text []byte
	for _, name := range histories(t) {
		lines, err := os.ReadFile(filepath.Join(historytest.Dir(t), name))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, lines...)
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var e struct {
			Kind string
			Data map[string]any
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind] = true
		for name, value := range e.Data {
			empty := fmt.Sprint(value) == "[]" || fmt.Sprint(value) == "map[]" || value == nil || value == 0.0 &&
				name != "exit_code" || value == false
			fields[e.Kind+"."+name] = fields[e.Kind+"."+name] || !empty
		}
	}
	for _, k := range event.Kinds() {
		if !kinds[k.String()] {
			t.Errorf("no event is %s", k)
		}
	}
	delete(fields, "imported.events") // of a ledger that was empty
	for name, filled := range fields {
		if !filled {
			t.Errorf("%s is empty everywhere", name)
		}
	}
}

// wantClean fails for each finding of Verify.
func wantClean(t testing.TB, s *ledger.Store) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		v, err := audit.Verify(t.Context(), tx, nil)
		for _, f := range v.Findings {
			t.Errorf("verify: %+v", f)
		}
		return err
	})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
}

// TestHistoriesAreReadBackEqual writes each history into a ledger and reads it back: events, jobs and queues.
func TestHistoriesAreReadBackEqual(t *testing.T) {
	for _, name := range histories(t) {
		t.Run(name, func(t *testing.T) { readBackEqual(t, historytest.Read(t, name)) })
	}
}

func readBackEqual(t *testing.T, events []event.Event) {
	s := ledgertest.Open(t)
	historytest.Record(t, s, events)
	wantClean(t, s)
	want := historytest.NewFold()
	for _, e := range events {
		if err := want.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	got := historytest.NewFold()
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
		var err error
		i := 0
		for e, err := range tx.Events(t.Context(), ledger.Filter{}) {
			if err != nil {
				return err
			}
			was, is := mustJSON(t, events[i]), mustJSON(t, e)
			if was != is {
				t.Errorf("event %d\n got %s\nwant %s", e.Pos, is, was)
			}
			i++
		}
		if i != len(events) {
			t.Errorf("%d events, want %d", i, len(events))
		}
		for n, j := range want.Jobs {
			read, ok, err := projection.Get(t.Context(), tx, j.ID)
			if err != nil || !ok {
				t.Errorf("get %s: %t, %v", j.ID, ok, err)
			}
			got.Jobs[n] = read
			if j.Key == "" || j.KeyFree {
				continue
			}
			if read, ok, err = projection.GetByKey(t.Context(), tx, j.Queue, j.Key); err != nil || !ok || read.N != n {
				t.Errorf("get by key %q: %d, %t, %v", j.Key, read.N, ok, err)
			}
		}
		if got.Sealing, err = projection.SealingOf(t.Context(), tx); err != nil {
			return err
		}
		segments, err := projection.Segments(t.Context(), tx, 0)
		for _, s := range segments {
			got.Archived = append(got.Archived, s.Archived)
		}
		if err != nil {
			return err
		}
		timetable, err := schedules.List(t.Context(), tx)
		if err != nil {
			return err
		}
		for _, s := range timetable {
			got.Schedules[s.Spec.Name] = s
		}
		asOf, err := schedules.AsOf(t.Context(), tx, int64(len(events)))
		if err != nil || !reflect.DeepEqual(asOf, got.Schedules) {
			t.Errorf("as of the end: %+v, %v", asOf, err)
		}
		queues, err := projection.Queues(t.Context(), tx)
		for _, q := range queues {
			got.Queues[q.Name] = q
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if goldenText(got) != goldenText(want) {
		t.Errorf("got\n%s\nwant\n%s", goldenText(got), goldenText(want))
	}
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
