package projection_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/ledgertest"
	"jobledger/projection"
)

var update = flag.Bool("update", false, "rewrite testdata/history/v*.golden; the .jsonl files are for ever")

var historyDir = filepath.Join("..", "testdata", "history")

// history reads a file of events in their public form. What that form leaves out is filled in as an import does: the
// job's number is the pos of its enqueued event, and of a claim's worker only claimed says more than the name.
func history(t testing.TB, name string) (events []ledger.Event) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(historyDir, name))
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(map[ledger.JobID]int64)
	type claim struct {
		job     ledger.JobID
		attempt int
	}
	owners := make(map[claim]ledger.Worker)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var e ledger.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		switch e.Kind() {
		case ledger.KindEnqueued:
			numbers[e.Job] = e.Pos
		case ledger.KindClaimed:
			owners[claim{e.Job, e.Attempt}] = e.Worker
		}
		e.N = numbers[e.Job]
		if e.Attempt != 0 {
			e.Worker = owners[claim{e.Job, e.Attempt}]
		}
		events = append(events, e)
	}
	return events
}

// folded is what a history adds up to.
type folded struct {
	jobs   map[int64]projection.Job
	queues map[string]projection.Queue
}

func (f *folded) add(e ledger.Event) error {
	var err error
	switch b := e.Body.(type) {
	case *ledger.QueuePaused:
		f.queues[b.Queue], err = projection.EvolveQueue(f.queues[b.Queue], e)
	case *ledger.QueueResumed:
		f.queues[b.Queue], err = projection.EvolveQueue(f.queues[b.Queue], e)
	case *ledger.WorkerStarted, *ledger.WorkerStopped, *ledger.Rebuilt, *ledger.Restored, *ledger.Imported:
	default:
		f.jobs[e.N], err = projection.Evolve(f.jobs[e.N], e)
	}
	return err
}

func newFolded() *folded {
	return &folded{make(map[int64]projection.Job), make(map[string]projection.Queue)}
}

// String is the golden form: what is there, a line each.
func (f *folded) String() string {
	var out strings.Builder
	for n := int64(1); n < 1000; n++ {
		j, ok := f.jobs[n]
		if !ok {
			continue
		}
		fmt.Fprintf(&out, "job %s\n", j.ID)
		line := func(name string, value any) {
			if text := fmt.Sprint(value); text != "" && text != "0" && text != "0s" && text != "[]" && text != "map[]" && text != "false" && text != "<nil>" && text != "0001-01-01T00:00:00.000000Z" {
				fmt.Fprintf(&out, "    %-17s %s\n", name, text)
			}
		}
		line("n", j.N)
		line("seq", j.Seq)
		line("state", j.State)
		line("queue", j.Queue)
		line("priority", j.Priority)
		line("run_at", ledger.FormatTime(j.RunAt))
		line("key", j.Key)
		line("tags", fmt.Sprintf("%q", j.Tags))
		line("attempt", j.Attempt)
		line("failures", j.Failures)
		line("snoozes", j.Snoozes)
		line("max_attempts", j.MaxAttempts)
		line("max_runtime", j.MaxRuntime)
		line("version", j.Version)
		line("requires", fmt.Sprintf("%q", j.Requires))
		if j.Worker != (ledger.Worker{}) {
			line("worker", fmt.Sprintf("%+v", j.Worker))
		}
		line("lease_token", j.Token)
		line("claimed_at", ledger.FormatTime(j.ClaimedAt))
		line("heartbeat_at", ledger.FormatTime(j.HeartbeatAt))
		line("lease_expires_at", ledger.FormatTime(j.LeaseUntil))
		line("end_by", ledger.FormatTime(j.EndBy))
		line("finished_at", ledger.FormatTime(j.FinishedAt))
		if j.Progress != nil {
			line("progress", *j.Progress)
		}
		line("note", j.Note)
		line("error_code", j.ErrorCode)
		if j.ErrorDetail != "" {
			line("error_detail", fmt.Sprintf("%q", j.ErrorDetail))
		}
		line("erased", j.Erased)
	}
	var names []string
	for name := range f.queues {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		q := f.queues[name]
		fmt.Fprintf(&out, "queue %s\n    paused %t since %s by %s, reason %q\n", name, q.Paused, ledger.FormatTime(q.Since), q.Actor, q.Reason)
	}
	return out.String()
}

// TestOldHistoriesReplay folds the events that earlier programs wrote: what they mean is for ever. The .jsonl files
// are never changed; a new one is added when there are new kinds or fields.
func TestOldHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(historyDir, "v*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			f := newFolded()
			for _, e := range history(t, name+".jsonl") {
				if err := f.add(e); err != nil {
					t.Fatalf("event %d: %v", e.Pos, err)
				}
				if to := f.jobs[e.N].State; e.Seq != 0 && e.To != to {
					t.Errorf("event %d led to %s, and says %s", e.Pos, to, e.To)
				}
			}
			golden := filepath.Join(historyDir, name+".golden")
			got := f.String()
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

// TestTheFirstHistoryHasEverything keeps v1 honest: all kinds, and every field with a value somewhere.
func TestTheFirstHistoryHasEverything(t *testing.T) {
	kinds, fields := make(map[string]bool), make(map[string]bool)
	text, err := os.ReadFile(filepath.Join(historyDir, "v1.jsonl"))
	if err != nil {
		t.Fatal(err)
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
			empty := fmt.Sprint(value) == "[]" || fmt.Sprint(value) == "map[]" || value == nil || value == 0.0 && name != "exit_code" || value == false
			fields[e.Kind+"."+name] = fields[e.Kind+"."+name] || !empty
		}
	}
	for _, k := range ledger.Kinds() {
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

// bodiesOf are the payloads and results that the events of v1 name, by pos.
func bodiesOf(events []ledger.Event) map[int64]ledger.StoredBody {
	results := map[string]string{"001": "the result", "005": "secret", "008": "", "011": ""}
	erased := make(map[int64]bool)
	for _, e := range events {
		if e.Kind() == ledger.KindErased {
			erased[e.N] = true
		}
	}
	bodies := make(map[int64]ledger.StoredBody)
	for _, e := range events {
		if erased[e.N] {
			continue
		}
		name := string(e.Job)
		switch b := e.Body.(type) {
		case *ledger.Enqueued:
			name = name[len(name)-3:]
			bodies[e.Pos] = ledger.StoredBody{Pos: e.Pos, Salt: []byte("salt of " + name), Body: []byte("payload of " + name)}
		case *ledger.Succeeded:
			if b.ResultSHA256 != "" {
				bodies[e.Pos] = ledger.StoredBody{Pos: e.Pos, Body: []byte(results[name[len(name)-3:]])}
			}
		}
	}
	return bodies
}

// record writes a history into a ledger: rows, bodies and events.
func record(t testing.TB, s *ledger.Store, events []ledger.Event) {
	t.Helper()
	bodies := bodiesOf(events)
	f := newFolded()
	for _, e := range events { // a transaction each, as they happened
		before := f.jobs[e.N]
		if err := f.add(e); err != nil {
			t.Fatal(err)
		}
		err := s.Write(t.Context(), func(tx *ledger.Tx) error {
			var err error
			switch b := e.Body.(type) {
			case *ledger.QueuePaused:
				err = projection.PutQueue(t.Context(), tx, f.queues[b.Queue])
			case *ledger.QueueResumed:
				err = projection.PutQueue(t.Context(), tx, f.queues[b.Queue])
			default:
				if e.N != 0 {
					err = projection.Put(t.Context(), tx, before, f.jobs[e.N])
				}
			}
			if err != nil {
				return err
			}
			if b, ok := bodies[e.Pos]; ok {
				if err := tx.PutBody(b.Pos, b.Salt, b.Body); err != nil {
					return err
				}
			}
			return tx.Append(t.Context(), e)
		})
		if err != nil {
			t.Fatalf("record event %d: %v", e.Pos, err)
		}
	}
}

func verify(t testing.TB, s *ledger.Store) projection.Verified {
	t.Helper()
	var v projection.Verified
	err := s.Read(context.Background(), func(tx *ledger.Tx) (err error) {
		v, err = projection.Verify(context.Background(), tx, nil)
		return err
	})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return v
}

func wantClean(t testing.TB, s *ledger.Store) {
	t.Helper()
	for _, f := range verify(t, s).Findings {
		t.Errorf("verify: %+v", f)
	}
}

// TestARecordedHistoryIsTheSame writes v1 into a ledger and reads it back: events, jobs and queues.
func TestARecordedHistoryIsTheSame(t *testing.T) {
	s := ledgertest.Open(t)
	events := history(t, "v1.jsonl")
	record(t, s, events)
	wantClean(t, s)
	want := newFolded()
	for _, e := range events {
		if err := want.add(e); err != nil {
			t.Fatal(err)
		}
	}
	got := newFolded()
	err := s.Read(t.Context(), func(tx *ledger.Tx) error {
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
		for n, j := range want.jobs {
			read, ok, err := projection.Get(t.Context(), tx, j.ID)
			if err != nil || !ok {
				t.Errorf("get %s: %t, %v", j.ID, ok, err)
			}
			got.jobs[n] = read
			if j.Key == "" {
				continue
			}
			if read, ok, err = projection.GetByKey(t.Context(), tx, j.Queue, j.Key); err != nil || !ok || read.N != n {
				t.Errorf("get by key %q: %d, %t, %v", j.Key, read.N, ok, err)
			}
		}
		queues, err := projection.Queues(t.Context(), tx)
		for _, q := range queues {
			got.queues[q.Name] = q
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("got\n%s\nwant\n%s", got, want)
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
