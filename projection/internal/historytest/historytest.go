// Package historytest reads the histories of testdata/history and writes them into a ledger, for the tests of
// projection and audit. It is for tests only.
package historytest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"jobledger/ledger"
	"jobledger/ledger/event"
	"jobledger/projection"
)

// Dir returns the folder of the histories, as the test of any package of this module sees it.
func Dir(t testing.TB) string {
	t.Helper()
	for up := ".."; len(up) < 30; up = filepath.Join("..", up) {
		dir := filepath.Join(up, "testdata", "history")
		if found, err := os.Stat(dir); err == nil && found.IsDir() {
			return dir
		}
	}
	t.Fatal("no folder testdata/history above this package")
	return ""
}

// Read reads a file of events in their public form. What that form leaves out is filled in as an import does:
// the job's number is the pos of its enqueued event, and of a claim's worker only claimed and
// taken_over say more than the name.
func Read(t testing.TB, name string) (events []event.Event) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Dir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(map[event.JobID]int64)
	type claim struct {
		job     event.JobID
		attempt int
	}
	owners := make(map[claim]event.Worker)
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var e event.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		switch e.Kind() {
		case event.KindEnqueued:
			numbers[e.Job] = e.Pos
		case event.KindClaimed, event.KindTakenOver:
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

// Fold is what a history adds up to: jobs by number, queues by name.
type Fold struct {
	Jobs   map[int64]projection.Job
	Queues map[string]projection.Queue
}

// Add takes the next event.
func (f *Fold) Add(e event.Event) error {
	var err error
	switch b := e.Body.(type) {
	case *event.QueuePaused:
		f.Queues[b.Queue], err = projection.EvolveQueue(f.Queues[b.Queue], e)
	case *event.QueueResumed:
		f.Queues[b.Queue], err = projection.EvolveQueue(f.Queues[b.Queue], e)
	case *event.WorkerStarted, *event.WorkerStopped, *event.Rebuilt, *event.Restored, *event.Imported:
	default:
		f.Jobs[e.N], err = projection.Evolve(f.Jobs[e.N], e)
	}
	return err
}

// NewFold returns the Fold of no events.
func NewFold() *Fold {
	return &Fold{make(map[int64]projection.Job), make(map[string]projection.Queue)}
}

// bodiesOf are the payloads and results that the events of v1 and v2 name, by pos.
func bodiesOf(events []event.Event) map[int64]ledger.StoredBody {
	results := map[string]string{"001": "the result", "005": "secret", "008": "", "011": ""}
	erased := make(map[int64]bool)
	for _, e := range events {
		if e.Kind() == event.KindErased {
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
		case *event.Enqueued:
			name = name[len(name)-3:]
			bodies[e.Pos] = ledger.StoredBody{Pos: e.Pos, Salt: []byte("salt of " + name),
				Body: []byte("payload of " + name)}
		case *event.Succeeded:
			if b.ResultSHA256 != "" {
				bodies[e.Pos] = ledger.StoredBody{Pos: e.Pos, Body: []byte(results[name[len(name)-3:]])}
			}
		}
	}
	return bodies
}

// Record writes a history into a ledger: rows, bodies and events.
func Record(t testing.TB, s *ledger.Store, events []event.Event) {
	t.Helper()
	bodies := bodiesOf(events)
	f := NewFold()
	for _, e := range events { // a transaction each, as they happened
		before := f.Jobs[e.N]
		if err := f.Add(e); err != nil {
			t.Fatal(err)
		}
		err := s.Write(t.Context(), func(tx *ledger.Tx) error {
			var err error
			switch b := e.Body.(type) {
			case *event.QueuePaused:
				err = projection.PutQueue(t.Context(), tx, f.Queues[b.Queue])
			case *event.QueueResumed:
				err = projection.PutQueue(t.Context(), tx, f.Queues[b.Queue])
			default:
				if e.N != 0 {
					err = projection.Put(t.Context(), tx, before, f.Jobs[e.N])
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
